package grammar

import "slices"

// In the name of a property that may be another than the listed ones, most characters lead to one state, in which any
// text may follow, and a few continue a listed name. The mask is that of this state, but for the tokens that begin with
// these few.

// freeNext returns the state that most characters lead to from s if every plain text may follow there, or nil.
func (a *automaton) freeNext(s *state) *state {
	if a.plainNext(s) != nil {
		return nil
	}
	targets := make([]*state, 0, 16)
	var counts [128]int
	most := 0
	for b := byte(' '); b < 0x7f; b++ {
		if b == '"' || b == '\\' {
			continue
		}
		to := a.step(s, b)
		i := slices.Index(targets, to)
		if i < 0 {
			i = len(targets)
			targets = append(targets, to)
		}
		if counts[i]++; counts[i] > counts[most] {
			most = i
		}
	}
	free := targets[most]
	if free == a.dead || counts[most] < 32 || free.rounded || free.unknown || free.tokens >= infinite ||
		a.plainNext(free) != free || a.namesTokens(free) {
		return nil
	}
	return free
}

// walkAround fills m with the mask of free, and walks only where a token leads from s to another state than from free.
func (a *automaton) walkAround(m *mask, s, free *state) {
	base := a.maskOf(free)
	copy(m.bits, base.bits)
	m.any, m.most = base.any, base.most
	for _, r := range base.subtrees {
		if to := a.after(free, r.path); to != a.dead && to == a.after(s, r.path) {
			m.subtrees = append(m.subtrees, r)
		}
	}
	t := &a.v.all
	var path, other [longestToken + 1]*state
	path[0], other[0] = s, free
	for i, end := int32(0), int32(len(t.nodes)); i < end; {
		n := &t.nodes[i]
		if a.work > maxWork { // what is not known to be allowed is not
			t.setAll(m.bits, i, end, false)
			return
		}
		next, beside := a.step(path[n.depth-1], n.key), a.step(other[n.depth-1], n.key)
		switch {
		case next == beside:
			i = n.skip
			continue
		case next == a.dead, beside == a.dead, next.undecided(int(n.depth)), beside.undecided(int(n.depth)):
			t.setAll(m.bits, i, n.skip, false)
			if next != a.dead {
				a.walk(m, t, i, n.skip, &path)
			}
			i = n.skip
			continue
		case n.token == noToken:
		case next.tokens < infinite:
			t.set(m.bits, n)
			m.any, m.most = true, max(m.most, next.tokens)
		default:
			t.setAll(m.bits, i, i+1, false)
		}
		path[n.depth], other[n.depth] = next, beside
		i++
	}
}

// maxTotal bounds the states that isTotal follows.
const maxTotal = 256

// isTotal reports whether any plain text may follow s, through whatever states, and bounds the tokens to the end after
// it: as inside a text that a pattern must match somewhere.
func (a *automaton) isTotal(s *state) (most int64, ok bool) {
	if s.totalKnown {
		return s.totalMost, s.total
	}
	s.totalKnown = true
	seen := map[*state]bool{s: true}
	order := []*state{s}
	for i := 0; i < len(order); i++ {
		at := order[i]
		if at.total {
			most = max(most, at.totalMost)
			continue
		}
		add := func(to *state) bool {
			if to == nil || to == a.dead || to.unknown || to.rounded || to.tokens >= infinite || len(order) > maxTotal {
				return false
			}
			if most = max(most, to.tokens); !seen[to] {
				seen[to] = true
				order = append(order, to)
			}
			return true
		}
		for b := byte(' '); b < 0x80; b++ {
			plain := b != '"' && b != '\\'
			if plain && (b == ' ' || a.classOf[b] != a.classOf[b-1] || b-1 == '"' || b-1 == '\\') && !add(a.step(at, b)) {
				return 0, false
			}
		}
		if !add(a.beyondNext(at)) {
			return 0, false
		}
	}
	for _, at := range order {
		at.totalKnown, at.total, at.totalMost = true, true, most
	}
	return most, true
}

// totalNext is isTotal for states from which plain characters lead to several states.
func (a *automaton) totalNext(s *state) (most int64, ok bool) {
	if a.plainNext(s) != nil || a.step(s, ' ') == a.dead || a.step(s, '~') == a.dead {
		return 0, false
	}
	return a.isTotal(s)
}

// takeAllPlain adds all plain tokens to m.
func (a *automaton) takeAllPlain(m *mask, most int64) {
	for _, of := range a.v.plain {
		or(m.bits, of)
	}
	or(m.bits, a.v.longPlain)
	m.any, m.most = true, max(m.most, most)
}

// beyondNext returns the state that every character of several bytes leads to from s, or nil.
func (a *automaton) beyondNext(s *state) *state {
	if !s.beyondKnown {
		s.beyondKnown = true
		s.beyond = a.findBeyondNext(s)
	}
	return s.beyond
}
