package trie

// Most automata treat all lower-case letters alike, and most words of one length are the same to them. So the tokens
// of a vocabulary form a trie of kinds of bytes, too, which has a tenth of the nodes. Masks walk it.

// KindOf maps a byte to its kind, at most 64: lower-case letters, upper-case letters, digits, other bytes of ASCII,
// control characters, and the bytes of UTF-8, by what may follow them. BytesOf are the bytes of each kind.
var KindOf, BytesOf = func() (of [256]uint8, bytes [][]byte) {
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

// Kinds is a trie of the kinds of the bytes of the tokens in a trie, in preorder.
type Kinds struct {
	Of      *Trie
	Nodes   []KindNode // the last one is behind all others
	members []int32    // the nodes of the trie at each node
	lasts   []uint32   // of each of the members, see Lasts
	ids     []int32    // the tokens that end at each node
	sets    [][]uint32 // masks of many tokens
}

// KindNode is a node of a Kinds. What it has of members and ids ends where the next one's begins.
type KindNode struct {
	Skip   int32 // behind the subtree
	member int32
	id     int32
	own    int32  // mask of the tokens that end here, or -1
	all    int32  // mask of these and those below, or -1
	Below  uint64 // kinds of the bytes below
	Kind   uint8
	Depth  uint8 // from 1
}

// manyTokens is the number of tokens from which on they have a mask.
const manyTokens = 1024

// makeKinds makes the trie of kinds of t, with masks for a vocabulary of a size.
func makeKinds(t *Trie, size int) *Kinds {
	k := &Kinds{Of: t}
	var build func(members []int32, kind, depth uint8)
	children := func(lists *[64][]int32, from, to int32) {
		for i := from; i < to; i = t.Nodes[i].Skip {
			kind := KindOf[t.Nodes[i].Key]
			lists[kind] = append(lists[kind], i)
		}
	}
	build = func(members []int32, kind, depth uint8) {
		at := len(k.Nodes)
		k.Nodes = append(k.Nodes, KindNode{member: int32(len(k.members)), id: int32(len(k.ids)), Kind: kind, Depth: depth})
		k.members = append(k.members, members...)
		for _, i := range members {
			last := uint32(0)
			for _, b := range t.PathTo(i) {
				last = last<<8 | uint32(b)
			}
			k.lasts = append(k.lasts, last)
		}
		var lists [64][]int32
		for _, i := range members {
			k.ids = append(k.ids, t.Between(i, i+1)...)
			children(&lists, i+1, t.Nodes[i].Skip)
		}
		own := len(k.ids)
		below := uint64(0)
		for next, list := range lists {
			if len(list) > 0 {
				child := len(k.Nodes)
				build(list, uint8(next), depth+1)
				below |= 1<<next | k.Nodes[child].Below
			}
		}
		n := &k.Nodes[at]
		n.Skip, n.Below = int32(len(k.Nodes)), below
		n.own, n.all = k.addSet(k.ids[n.id:own], size), k.addSet(k.ids[n.id:], size)
	}
	var roots [64][]int32
	children(&roots, 0, int32(len(t.Nodes)))
	for kind, list := range roots {
		if len(list) > 0 {
			build(list, uint8(kind), 1)
		}
	}
	k.Nodes = append(k.Nodes, KindNode{member: int32(len(k.members)), id: int32(len(k.ids))})
	return k
}

// addSet makes a mask of tokens, if they are many, and returns its index, or -1.
func (k *Kinds) addSet(ids []int32, size int) int32 {
	if len(ids) < manyTokens {
		return -1
	}
	mask := make([]uint32, Words(size))
	setAll(mask, ids)
	k.sets = append(k.sets, mask)
	return int32(len(k.sets) - 1)
}

// Ends reports whether tokens end at a node.
func (k *Kinds) Ends(i int32) bool { return k.Nodes[i+1].id > k.Nodes[i].id }

// Set marks the tokens that end at a node.
func (k *Kinds) Set(bits []uint32, i int32) {
	k.mark(bits, k.Nodes[i].id, k.Nodes[i+1].id, k.Nodes[i].own)
}

// SetAll marks the tokens that end at a node and below it.
func (k *Kinds) SetAll(bits []uint32, i int32) {
	n := &k.Nodes[i]
	k.mark(bits, n.id, k.Nodes[n.Skip].id, n.all)
}

func (k *Kinds) mark(bits []uint32, from, to, set int32) {
	if set >= 0 {
		Or(bits, k.sets[set])
		return
	}
	setAll(bits, k.ids[from:to])
}

// Lasts returns the last four bytes to each of the members of a node, the last one in the low bits.
func (k *Kinds) Lasts(i int32) []uint32 { return k.lasts[k.Nodes[i].member:k.Nodes[i+1].member] }

// Members returns the nodes of the trie at a node.
func (k *Kinds) Members(i int32) []int32 { return k.members[k.Nodes[i].member:k.Nodes[i+1].member] }
