package grammar

// Most automata treat all lower-case letters alike, and most words of one length are the same to them. So the tokens
// of a vocabulary form a trie of kinds of bytes, too, which has a tenth of the nodes. A mask walks it, see front.go.

// kindOf maps a byte to its kind, at most 64: lower-case letters, upper-case letters, digits, other bytes of ASCII,
// control characters, and the bytes of UTF-8, by what may follow them. bytesOf are the bytes of each kind.
var kindOf, bytesOf = func() (of [256]uint8, bytes [][]byte) {
	kinds := map[string]uint8{}
	for b := range 256 {
		name := string([]byte{byte(b)})
		switch {
		case b >= 'a' && b <= 'z':
			name = "lower"
		case b >= 'A' && b <= 'Z':
			name = "upper"
		case b >= '0' && b <= '9':
			name = "digit"
		case b == '\t' || b == '\n' || b == '\r':
		case b < ' ' || b == 0x7f:
			name = "control"
		case b < 0x7f:
		case b < 0x90:
			name = "continues 80"
		case b < 0xa0:
			name = "continues 90"
		case b < 0xc0:
			name = "continues a0"
		// Spaces of Unicode begin with c2, e1, e2, e3 and ef; after e0, ed, f0 and f4 not every byte may follow.
		case b == 0xc2, b >= 0xe0 && b <= 0xe3, b >= 0xed && b <= 0xf0, b == 0xf4:
		case b < 0xc2 || b > 0xf4:
			name = "not UTF-8"
		case b < 0xe0:
			name = "begins two"
		case b < 0xf0:
			name = "begins three"
		default:
			name = "begins four"
		}
		kind, ok := kinds[name]
		if !ok {
			kind = uint8(len(bytes))
			kinds[name] = kind
			bytes = append(bytes, nil)
		}
		of[b] = kind
		bytes[kind] = append(bytes[kind], byte(b))
	}
	return of, bytes
}()

// kindTrie is a trie of the kinds of the bytes of the tokens in a trie, in preorder.
type kindTrie struct {
	of      *trie
	nodes   []kindNode // the last one is behind all others
	members []int32    // the nodes of the trie at each node
	up      []int32    // by node of the trie: the one above
	ids     []int32    // the tokens that end at each node
	sets    [][]uint32 // masks of many tokens
}

// kindNode is a node of a kindTrie. What it has of members and ids ends where the next one's begins.
type kindNode struct {
	skip   int32 // behind the subtree
	member int32
	id     int32
	own    int32  // mask of the tokens that end here, or -1
	all    int32  // mask of these and those below, or -1
	below  uint64 // kinds of the bytes below
	kind   uint8
	depth  uint8 // from 1
}

// manyTokens is the number of tokens from which on they have a mask.
const manyTokens = 1024

func makeKindTrie(t *trie, size int) *kindTrie {
	k := &kindTrie{of: t, up: make([]int32, len(t.nodes))}
	var build func(members []int32, kind, depth uint8)
	children := func(lists *[64][]int32, from, to int32) {
		for i := from; i < to; i = t.nodes[i].skip {
			kind := kindOf[t.nodes[i].key]
			lists[kind] = append(lists[kind], i)
		}
	}
	build = func(members []int32, kind, depth uint8) {
		at := len(k.nodes)
		k.nodes = append(k.nodes, kindNode{member: int32(len(k.members)), id: int32(len(k.ids)), kind: kind, depth: depth})
		k.members = append(k.members, members...)
		var lists [64][]int32
		for _, i := range members {
			n := &t.nodes[i]
			switch {
			case n.token >= 0:
				k.ids = append(k.ids, n.token)
			case n.token != noToken:
				k.ids = append(k.ids, t.groups[groupToken-n.token]...)
			}
			children(&lists, i+1, n.skip)
			for at := i + 1; at < n.skip; at = t.nodes[at].skip {
				k.up[at] = i
			}
		}
		own := len(k.ids)
		below := uint64(0)
		for next, list := range lists {
			if len(list) > 0 {
				child := len(k.nodes)
				build(list, uint8(next), depth+1)
				below |= 1<<next | k.nodes[child].below
			}
		}
		n := &k.nodes[at]
		n.skip, n.below = int32(len(k.nodes)), below
		n.own, n.all = k.set(k.ids[n.id:own], size), k.set(k.ids[n.id:], size)
	}
	var roots [64][]int32
	children(&roots, 0, int32(len(t.nodes)))
	for kind, list := range roots {
		if len(list) > 0 {
			build(list, uint8(kind), 1)
		}
	}
	k.nodes = append(k.nodes, kindNode{member: int32(len(k.members)), id: int32(len(k.ids))})
	return k
}

// set makes a mask of tokens, if they are many, and returns its index, or -1.
func (k *kindTrie) set(ids []int32, size int) int32 {
	if len(ids) < manyTokens {
		return -1
	}
	mask := make([]uint32, Words(size))
	for _, id := range ids {
		mask[id>>5] |= 1 << (id & 31)
	}
	k.sets = append(k.sets, mask)
	return int32(len(k.sets) - 1)
}

// take marks the tokens that end at the nodes from one to another; set is their mask, or -1.
func (k *kindTrie) take(bits []uint32, from, to, set int32) {
	if set >= 0 {
		or(bits, k.sets[set])
		return
	}
	for _, id := range k.ids[k.nodes[from].id:k.nodes[to].id] {
		bits[id>>5] |= 1 << (id & 31)
	}
}

// at returns the nodes of the trie at a node.
func (k *kindTrie) at(i int32) []int32 { return k.members[k.nodes[i].member:k.nodes[i+1].member] }
