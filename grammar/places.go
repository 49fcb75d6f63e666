package grammar

// placeSet is a set of places. It is cleared in constant time.
type placeSet struct {
	slots []placeSlot // a hash table, of which at most half is in use
	used  int
	round uint32 // slots of other rounds are free
}

type placeSlot struct {
	node  int32
	frame uint32
	round uint32
}

// smallPlaceSet is the smallest number of slots.
const smallPlaceSet = 64

// keptPlaceSet bounds the slots that are kept from one round to the next.
const keptPlaceSet = 1 << 12

func (s *placeSet) clear() {
	s.used = 0
	if s.round++; s.round == 0 || len(s.slots) > keptPlaceSet || s.slots == nil {
		s.slots, s.round = make([]placeSlot, smallPlaceSet), 1
	}
}

// add adds a place, and reports whether it is new.
func (s *placeSet) add(p place) bool {
	slot := s.find(p.node, p.frame.id)
	if slot.round == s.round {
		return false
	}
	*slot = placeSlot{p.node, p.frame.id, s.round}
	if s.used++; 2*s.used > len(s.slots) {
		s.grow()
	}
	return true
}

// find returns the slot of a place, or the free one where it belongs.
func (s *placeSet) find(node int32, frame uint32) *placeSlot {
	h := (uint64(uint32(node))<<32 | uint64(frame)) * 0x9e3779b97f4a7c15
	for i := h >> 32; ; i++ {
		slot := &s.slots[i&uint64(len(s.slots)-1)]
		if slot.round != s.round || slot.node == node && slot.frame == frame {
			return slot
		}
	}
}

func (s *placeSet) grow() {
	old := s.slots
	s.slots = make([]placeSlot, 2*len(old))
	for _, slot := range old {
		if slot.round == s.round {
			*s.find(slot.node, slot.frame) = slot
		}
	}
}
