// Package trie has tries of the tokens of a vocabulary, by their bytes and by the kinds of their bytes, and masks.
//
// Contract: a mask has a bit for each token, that of token id is bit id%32 of word id/32. A trie does not change after
// it is made, so it is safe for concurrent use.
package trie

// Trie stores tokens in byte order, in preorder: the subtree of a node follows it and ends at Skip.
type Trie struct {
	Nodes []Node
	Roots [256]int32 // by byte: the first node of the tokens that begin with it, or -1
	Below []uint64   // by node: the kinds of the bytes below it
	Kinds *Kinds     // nil: none is made

	groups [][]int32 // tokens with equal bytes
	ids    []int32   // in order
	from   []int32   // by node, and behind the last one: how many ids precede it
	text   []byte    // of all tokens, in order: one array is quick to read
	starts []int32   // of each in text
}

// Node is one byte of the tokens that begin with the bytes up to it.
type Node struct {
	Skip   int32
	Token  int32 // the token that ends here; None; or, below it, one of groups
	Key    byte
	Depth  uint8 // from 1
	Height uint8 // the most bytes below
}

// None is the token of a node at which none ends.
const None = -1

const group = None - 1 // of groups[0]

// Words returns the length of a mask of a number of tokens.
func Words(tokens int) int { return (tokens + 31) / 32 }

// Or adds the tokens of src to dst.
func Or(dst, src []uint32) {
	for i, w := range src {
		dst[i] |= w
	}
}

func setAll(bits []uint32, ids []int32) {
	for _, id := range ids {
		bits[id>>5] |= 1 << (id & 31)
	}
}

// New makes a trie of the tokens in order, which is sorted by their bytes. Tokens have 1 to 255 bytes.
func New(tokens [][]byte, order []int32) (t Trie) {
	t.ids = order
	var path []int32 // nodes from the root to the last one
	var last []byte
	closeTo := func(depth int) {
		for len(path) > depth {
			t.Nodes[path[len(path)-1]].Skip = int32(len(t.Nodes))
			path = path[:len(path)-1]
		}
	}
	for k, id := range order {
		b := tokens[id]
		t.starts, t.text = append(t.starts, int32(len(t.text))), append(t.text, b...)
		common := 0
		for common < len(b) && common < len(last) && b[common] == last[common] {
			common++
		}
		if common == len(b) && len(b) == len(last) {
			n := &t.Nodes[path[len(path)-1]]
			if n.Token >= 0 {
				t.groups = append(t.groups, []int32{n.Token})
				n.Token = group - int32(len(t.groups)-1)
			}
			g := &t.groups[group-n.Token]
			*g = append(*g, id)
			continue
		}
		closeTo(common)
		for i := common; i < len(b); i++ {
			path = append(path, int32(len(t.Nodes)))
			t.from = append(t.from, int32(k))
			t.Nodes = append(t.Nodes, Node{Token: None, Key: b[i], Depth: uint8(i + 1)})
		}
		t.Nodes[path[len(path)-1]].Token = id
		last = b
	}
	closeTo(0)
	t.from = append(t.from, int32(len(order)))
	t.summarize()
	return t
}

// MakeKinds makes t.Kinds, for a vocabulary of a size.
func (t *Trie) MakeKinds(size int) { t.Kinds = makeKinds(t, size) }

// summarize computes what the nodes have of those below them.
func (t *Trie) summarize() {
	for b := range t.Roots {
		t.Roots[b] = -1
	}
	for i := int32(0); int(i) < len(t.Nodes); i = t.Nodes[i].Skip {
		t.Roots[t.Nodes[i].Key] = i
	}
	t.Below = make([]uint64, len(t.Nodes))
	for i := int32(len(t.Nodes)) - 1; i >= 0; i-- {
		n := &t.Nodes[i]
		for k := i + 1; k < n.Skip; k = t.Nodes[k].Skip {
			t.Below[i] |= 1<<KindOf[t.Nodes[k].Key] | t.Below[k]
			n.Height = max(n.Height, t.Nodes[k].Height+1)
		}
	}
}

// Set marks the tokens that end at a node. There are some.
func (t *Trie) Set(bits []uint32, n *Node) {
	if n.Token >= 0 {
		bits[n.Token>>5] |= 1 << (n.Token & 31)
		return
	}
	setAll(bits, t.groups[group-n.Token])
}

// Between returns the tokens that end at the nodes from one to another.
func (t *Trie) Between(from, to int32) []int32 { return t.ids[t.from[from]:t.from[to]] }

// SetAll marks the tokens that end at the nodes from one to another.
func (t *Trie) SetAll(bits []uint32, from, to int32) { setAll(bits, t.Between(from, to)) }

// ClearAll is the reverse of SetAll.
func (t *Trie) ClearAll(bits []uint32, from, to int32) {
	for _, id := range t.Between(from, to) {
		bits[id>>5] &^= 1 << (id & 31)
	}
}

// Child returns the child of at for key, or -1. The root is -1.
func (t *Trie) Child(at int32, key byte) int32 {
	if at < 0 {
		return t.Roots[key]
	}
	for i, to := at+1, t.Nodes[at].Skip; i < to && t.Nodes[i].Key <= key; i = t.Nodes[i].Skip {
		if t.Nodes[i].Key == key {
			return i
		}
	}
	return -1
}

// First returns one of the tokens that end at a node.
func (t *Trie) First(n *Node) int32 {
	if n.Token <= group {
		return t.groups[group-n.Token][0]
	}
	return n.Token
}

// PathTo returns the bytes to a node.
func (t *Trie) PathTo(at int32) []byte { return t.text[t.starts[t.from[at]]:][:t.Nodes[at].Depth] }
