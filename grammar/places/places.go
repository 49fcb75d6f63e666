// Package places has sets of places of an automaton.
//
// Contract: a place is a node with the number of a frame. A Set must not be used by several goroutines at once.
package places

// Set is a set of places. It is cleared in constant time. A set that was never cleared cannot be used.
type Set struct {
	slots []slot // a hash table, of which at most half is in use
	used  int
	round uint32 // slots of other rounds are free
}

type slot struct {
	node  int32
	frame uint32
	round uint32
}

// smallest is the smallest number of slots.
const smallest = 64

// kept bounds the slots that are kept from one round to the next.
const kept = 1 << 14

// Clear removes all places.
func (s *Set) Clear() {
	s.used = 0
	if s.round++; s.round == 0 || len(s.slots) > kept || s.slots == nil {
		s.slots, s.round = make([]slot, smallest), 1
	}
}

// Add adds a place, and reports whether it is new.
func (s *Set) Add(node int32, frame uint32) bool {
	at := s.find(node, frame)
	if at.round == s.round {
		return false
	}
	*at = slot{node, frame, s.round}
	if s.used++; 2*s.used > len(s.slots) {
		s.grow()
	}
	return true
}

// find returns the slot of a place, or the free one where it belongs.
func (s *Set) find(node int32, frame uint32) *slot {
	h := (uint64(uint32(node))<<32 | uint64(frame)) * 0x9e3779b97f4a7c15
	for i := h >> 32; ; i++ {
		at := &s.slots[i&uint64(len(s.slots)-1)]
		if at.round != s.round || at.node == node && at.frame == frame {
			return at
		}
	}
}

func (s *Set) grow() {
	old := s.slots
	s.slots = make([]slot, 2*len(old))
	for _, x := range old {
		if x.round == s.round {
			*s.find(x.node, x.frame) = x
		}
	}
}
