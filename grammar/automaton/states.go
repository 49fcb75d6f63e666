package automaton

import (
	"cmp"
	"slices"
)

// intern returns the unique state of these places. It sorts places.
func (a *Automaton) intern(places []place, accept, unknown bool) *state {
	if len(places) == 0 && !accept && !unknown {
		return a.dead
	}
	if len(places) > 1 {
		if len(places) > MaxPlaces {
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

func (a *Automaton) costOf(p place) int64 { return sum(a.costs[p.node], p.frame.cost) }

// cheapest returns the places that are closest to the end of the text. It changes places.
func (a *Automaton) cheapest(places []place) []place {
	costs := make([]int64, len(places))
	for i, p := range places {
		costs[i] = a.costOf(p)
	}
	sorted := slices.Sorted(slices.Values(costs))
	limit := sorted[MaxPlaces-1] // of the costliest one
	below, _ := slices.BinarySearch(sorted, limit)
	kept, equal := places[:0], MaxPlaces-below
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
func (a *Automaton) sorted(places []place) []place {
	compare := func(x, y place) int {
		return cmp.Or(cmp.Compare(x.frame.id, y.frame.id), cmp.Compare(x.node, y.node))
	}
	keys := a.keys[:0] // of many places: they are quicker to compare
	for _, p := range places {
		at := p.frame.id
		if at >= 2 {
			at -= a.firstID - 2 // wraps around for most frames from before restart
		}
		if len(places) < 16 || at > p.frame.id || a.byID[at] != p.frame { // the frame is from before restart
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

// push returns the stack f with one more frame.
func (a *Automaton) push(f *frame, node, least, most int32, repeat, rounded bool) *frame {
	rounded = rounded || f.rounded
	k := frameKey{up: f.id, node: node, min: least, max: most}
	if repeat {
		k.flags |= 1
	}
	if rounded {
		k.flags |= 2
	}
	if made, ok := a.frames[k]; ok {
		return made
	}
	n := &a.p.Nodes[node]
	made := &frame{id: a.frameIDs, node: node, min: least, max: most, repeat: repeat, rounded: rounded, up: f,
		cost: f.cost, tokens: f.tokens}
	a.frameIDs++
	if repeat {
		made.cost = sum(made.cost, a.costs[n.Next], times(int64(least), a.costs[n.Arg]))
		made.tokens = sum(made.tokens, a.fewest(n.Next), times(int64(least), a.fewest(n.Arg)))
	} else {
		made.cost = sum(made.cost, a.costs[node])
		made.tokens = sum(made.tokens, a.fewest(node))
	}
	a.frames[k] = made
	a.byID = append(a.byID, made)
	a.bytes += 120
	return made
}
