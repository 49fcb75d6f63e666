package grammar

import "slices"

// stateTable finds the state of a set of places: a hash table of which at most half is in use.
type stateTable struct {
	slots []stateSlot
	used  int
}

type stateSlot struct {
	hash uint64
	s    *state // nil: free
}

// hashOf returns a hash of what identifies a state.
func hashOf(places []place, accept, unknown bool) uint64 {
	const factor = 0x9e3779b97f4a7c15
	h := uint64(len(places))
	if accept {
		h |= 1 << 32
	}
	if unknown {
		h |= 1 << 33
	}
	for _, p := range places {
		h = (h ^ h>>29 ^ uint64(uint32(p.node))<<32 ^ uint64(p.frame.id)) * factor
	}
	return h ^ h>>32
}

func (t *stateTable) find(hash uint64, places []place, accept, unknown bool) *state {
	if t.slots == nil {
		return nil
	}
	for i := hash; ; i++ {
		slot := &t.slots[i&uint64(len(t.slots)-1)]
		if slot.s == nil {
			return nil
		}
		if slot.hash == hash && slot.s.accept == accept && slot.s.unknown == unknown && slices.Equal(slot.s.places, places) {
			return slot.s
		}
	}
}

// add adds a state that the table lacks.
func (t *stateTable) add(hash uint64, s *state) {
	if t.used++; 2*t.used > len(t.slots) {
		old := t.slots
		t.slots = make([]stateSlot, max(64, 4*len(old)))
		for _, slot := range old {
			if slot.s != nil {
				t.put(slot)
			}
		}
	}
	t.put(stateSlot{hash, s})
}

func (t *stateTable) put(slot stateSlot) {
	i := slot.hash
	for t.slots[i&uint64(len(t.slots)-1)].s != nil {
		i++
	}
	t.slots[i&uint64(len(t.slots)-1)] = slot
}
