package grammar

// Where the names of an object's other properties begin, most plain tokens lead to one state, in which any text may
// follow, and a few begin like a listed name. The mask takes all plain tokens and walks only around the few.

// freeNext returns the state that most characters lead to from s if every plain text may follow there, or nil.
func (a *automaton) freeNext(s *state) *state {
	if a.plainNext(s) != nil {
		return nil
	}
	counts := map[*state]int{}
	var most *state
	for b := byte(' '); b < 0x7f; b++ {
		if b == '"' || b == '\\' {
			continue
		}
		to := a.step(s, b)
		if counts[to]++; most == nil || counts[to] > counts[most] {
			most = to
		}
	}
	if most == a.dead || counts[most] < 32 || most.rounded || most.unknown || most.tokens >= infinite ||
		a.plainNext(most) != most {
		return nil
	}
	return most
}

// walkAround adds the allowed plain tokens to m: all but those that walking without entering free finds not to be.
func (a *automaton) walkAround(m *mask, s, free *state) {
	a.takeAllPlain(m, free.tokens)
	t := &a.v.plains
	var path [longestToken + 1]*state
	path[0] = s
	for i, end := int32(0), int32(len(t.nodes)); i < end; {
		n := &t.nodes[i]
		from := path[n.depth-1]
		if n.key >= 0xc2 && a.beyondNext(from) == free { // all characters of several bytes
			i = n.skip
			continue
		}
		next := a.step(from, n.key)
		switch {
		case next == free:
			i = n.skip
			continue
		case next == a.dead || a.work > maxWork:
			t.setAll(m.bits, i, n.skip, false)
			i = n.skip
			continue
		}
		if next.tokens >= infinite {
			t.setAll(m.bits, i, i+1, false)
		} else if n.token != noToken {
			m.most = max(m.most, next.tokens)
		}
		if next.undecided(int(n.depth)) {
			t.setAll(m.bits, i+1, n.skip, false)
			if n.skip > i+1 {
				m.subtrees = append(m.subtrees, subtree{trie: t, node: i, path: a.pathTo(t, i)})
			}
			i = n.skip
			continue
		}
		path[n.depth] = next
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
