package program

// table finds the node that is equal to another: a hash table of indices of nodes, of which at most half is in use.
type table struct {
	slots []uint64 // hash in the high half, index in the low one; 0: free
	used  int
}

// find returns the index of the node that is equal to n; 0: there is none.
func (t *table) find(nodes []Node, n *Node) int32 {
	if t.slots == nil {
		return 0
	}
	hash := n.hash()
	for i := hash; ; i++ {
		slot := t.slots[i&uint64(len(t.slots)-1)]
		if slot == 0 || slot>>32 == hash && nodes[uint32(slot)] == *n {
			return int32(uint32(slot))
		}
	}
}

// add adds the index of a node that the table lacks.
func (t *table) add(nodes []Node, at int32) {
	if t.used++; 2*t.used > len(t.slots) {
		old := t.slots
		t.slots = make([]uint64, max(256, 4*len(old)))
		for _, slot := range old {
			if slot != 0 {
				t.put(slot)
			}
		}
	}
	t.put(nodes[at].hash()<<32 | uint64(at))
}

func (t *table) put(slot uint64) {
	i := slot >> 32
	for t.slots[i&uint64(len(t.slots)-1)] != 0 {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = slot
}

// hash returns 32 bits.
func (n *Node) hash() uint64 {
	h := (uint64(n.Op)<<32 | uint64(uint32(n.Set))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ uint64(uint32(n.Next))<<32 ^ uint64(uint32(n.Arg))) * 0x9e3779b97f4a7c15
	h = (h ^ h>>32 ^ uint64(uint32(n.Min))<<32 ^ uint64(uint32(n.Max))) * 0x9e3779b97f4a7c15
	return h >> 32
}
