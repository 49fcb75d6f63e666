package automaton

import (
	"slices"

	"github.com/ingotml/ingot/grammar/program"
)

// expand appends to a.stack the successors of a place that consumes nothing and has no alternatives. It reports whether
// the text may end here, and whether the truncated part of the stack decides.
func (a *Automaton) expand(at place) (accept, unknown bool) {
	n := &a.p.Nodes[at.node]
	f := at.frame
	switch n.Op {
	case program.Call:
		if n.Next != 0 { // otherwise a tail call: no frame
			f = a.push(f, n.Next, n.Min, n.Max, false, false)
			a.opens = a.opens || n.Max == program.MarkArray
		}
		a.stack = append(a.stack, place{n.Arg, f})
	case program.Repeat:
		if n.Min == 0 {
			a.stack = append(a.stack, place{n.Next, f})
		}
		a.stack = append(a.stack, place{n.Arg, a.push(f, at.node, max(n.Min-1, 0), max(n.Max-1, -1), true, false)})
	case program.Lazy:
		a.lazy = append(a.lazy, place{n.Next, f})
	case program.Skip:
		a.stack = append(a.stack, place{n.Next, f})
		if a.inText {
			a.skipping = true
			a.stack = append(a.stack, place{n.Arg, f})
		}
	case program.Distinct:
		if !a.repeats {
			a.stack = append(a.stack, place{n.Next, f})
		}
	case program.End:
		switch {
		case f == a.bottom:
			return true, false
		case f == a.hidden:
			return false, true
		case !f.repeat:
			a.stack = append(a.stack, place{f.node, f.up})
		default:
			r := &a.p.Nodes[f.node]
			if f.min == 0 {
				a.stack = append(a.stack, place{r.Next, f.up})
			}
			if f.max != 0 {
				a.stack = append(a.stack, place{r.Arg, a.push(f.up, f.node, max(f.min-1, 0), max(f.max-1, -1), true, f.rounded)})
			}
		}
	}
	return false, false
}

// close returns the state of all places that are reachable from seeds without consuming a byte.
func (a *Automaton) close(seeds []place) *state {
	a.seen.Clear()
	a.stack = append(a.stack[:0], seeds...)
	slices.Reverse(a.stack) // their frames in order: then the places nearly are
	a.lazy, a.skipping, a.opens = a.lazy[:0], false, false
	found := a.places[:0]
	var accept, unknown bool
	explored := 0
	for len(a.stack) > 0 {
		a.work++
		at := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if !a.p.Live[at.node] {
			continue
		}
		if explored > 0 || len(a.stack) > 0 { // a single place needs no visited set
			if !a.seen.Add(at.node, at.frame.id) {
				continue
			}
		}
		n := &a.p.Nodes[at.node]
		if n.Takes() {
			found = append(found, at)
			continue
		}
		if explored++; explored > maxExplored {
			for _, s := range seeds {
				found = a.shortest(found, s)
			}
			break
		}
		if n.Op == program.Alt { // most alternatives take a byte
			alts := a.p.AltsOf(n)
			for _, alt := range alts[:n.Max] {
				found = append(found, place{alt, at.frame})
			}
			for _, alt := range slices.Backward(alts[n.Max:]) {
				a.stack = append(a.stack, place{alt, at.frame})
			}
			a.work += int(n.Max)
			continue
		}
		end, cut := a.expand(at)
		accept, unknown = accept || end, unknown || cut
	}
	a.places = found
	if a.p.Lexes {
		if len(a.lazy) > 0 {
			return a.close(slices.Clone(a.lazy))
		}
		if accept && a.skipping && !a.trailing(seeds) {
			return a.close(append(slices.Clone(seeds), place{a.p.Skips, a.bottom}))
		}
	}
	opens := a.opens
	s := a.intern(found, accept, unknown)
	if opens && s != a.dead {
		s.uniqueState().opens = true
	}
	return s
}

// shortest appends the place that consumes the next byte or token on the shortest path from at, if there is one.
func (a *Automaton) shortest(found []place, at place) []place {
	for !a.p.Nodes[at.node].Takes() {
		next, ok := a.follow(at)
		if !ok {
			return found
		}
		at = next
	}
	return append(found, at)
}

// follow returns the next place on the shortest path from a place that consumes nothing, or false at the end of the
// text or of the truncated stack.
func (a *Automaton) follow(at place) (place, bool) {
	n := &a.p.Nodes[at.node]
	f := at.frame
	switch n.Op {
	case program.Alt:
		return place{a.p.AltsOf(n)[a.best[at.node]], f}, true
	case program.Distinct:
		return place{n.Next, f}, !a.repeats
	case program.Lazy, program.Skip:
		return place{n.Next, f}, true
	case program.Call:
		if n.Next != 0 {
			f = a.push(f, n.Next, n.Min, n.Max, false, false)
		}
		return place{n.Arg, f}, true
	case program.Repeat:
		if n.Min == 0 {
			return place{n.Next, f}, true
		}
		return place{n.Arg, a.push(f, at.node, n.Min-1, max(n.Max-1, -1), true, false)}, true
	}
	switch {
	case f == a.bottom || f == a.hidden:
		return at, false
	case !f.repeat:
		return place{f.node, f.up}, true
	case f.min == 0:
		return place{a.p.Nodes[f.node].Next, f.up}, true
	}
	return place{a.p.Nodes[f.node].Arg, a.push(f.up, f.node, f.min-1, max(f.max-1, -1), true, f.rounded)}, true
}

// trailing reports whether the seeds include what may be skipped at the end of a text.
func (a *Automaton) trailing(seeds []place) bool {
	return slices.Contains(seeds, place{a.p.Skips, a.bottom})
}
