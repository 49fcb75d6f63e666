package grammar

import (
	"cmp"
	"slices"
)

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

// intern returns the unique state of these places. It sorts places.
func (a *automaton) intern(places []place, accept, unknown bool) *state {
	if len(places) == 0 && !accept && !unknown {
		return a.dead
	}
	if len(places) > 1 {
		if len(places) > maxPlaces {
			places = a.cheapest(places)
		}
		places = a.sorted(places)
	}
	hash := hashOf(places, accept, unknown)
	if s := a.states.find(hash, places, accept, unknown); s != nil {
		return s
	}
	s := &state{places: slices.Clone(places), accept: accept, unknown: unknown, generation: a.generation, cost: infinite,
		tokens: infinite, id: uint32(a.states.used)}
	if accept || unknown {
		s.cost, s.tokens = 0, 0
	}
	for _, p := range places {
		s.cost = min(s.cost, a.costOf(p))
		s.tokens = min(s.tokens, sum(a.fewest(p.node), p.frame.tokens))
		s.rounded = s.rounded || p.frame.rounded
	}
	s.simple = !s.unknown && !s.rounded && s.tokens < infinite
	a.states.add(hash, s)
	a.bytes += 250 + 24*len(places)
	return s
}

func (a *automaton) costOf(p place) int64 { return sum(a.costs[p.node], p.frame.cost) }

// cheapest returns the places that are closest to the end of the text. It changes places.
func (a *automaton) cheapest(places []place) []place {
	costs := make([]int64, len(places))
	for i, p := range places {
		costs[i] = a.costOf(p)
	}
	sorted := slices.Sorted(slices.Values(costs))
	limit := sorted[maxPlaces-1] // of the costliest one
	below, _ := slices.BinarySearch(sorted, limit)
	kept, equal := places[:0], maxPlaces-below
	for i, p := range places {
		if costs[i] < limit || costs[i] == limit && equal > 0 {
			if costs[i] == limit {
				equal--
			}
			kept = append(kept, p)
		}
	}
	return kept
}

// sorted returns the places without repetitions, in the order of their frames and nodes. It changes places.
func (a *automaton) sorted(places []place) []place {
	compare := func(x, y place) int {
		return cmp.Or(cmp.Compare(x.frame.id, y.frame.id), cmp.Compare(x.node, y.node))
	}
	keys := a.keys[:0] // of many places: they are quicker to compare
	for _, p := range places {
		at := p.frame.id
		if at >= 2 {
			at -= a.firstID - 2
		}
		if len(places) < 16 || int(at) >= len(a.byID) { // of a frame from before restart
			slices.SortFunc(places, compare)
			return slices.Compact(places)
		}
		keys = append(keys, uint64(at)<<32|uint64(p.node))
	}
	a.keys = keys
	slices.Sort(keys)
	places = places[:0]
	for _, k := range slices.Compact(keys) {
		places = append(places, place{int32(uint32(k)), a.byID[k>>32]})
	}
	return places
}
