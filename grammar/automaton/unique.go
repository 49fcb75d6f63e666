package automaton

import (
	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/program"
)

// Items, and names of properties, that must differ from those before them depend on the whole text of their array or
// object, which no state holds. The automaton therefore leaves it to the text (package items) whether the item that
// ends here repeats one before it: a state has up to two successors for a byte, and Distinct is passed in one of
// them only. All else is shared with grammars without such items. A mask is the one of the state, without the tokens
// that complete a repeated item or leave no other (guard.go).

// findUnique returns s.unique with what the stacks say. inside: some place is in an array whose items are compared.
// free: some place has infinitely many texts up to the end of each item around it. loose: some place is in no such
// item.
func (a *Automaton) findUnique(s *state) *uniqueState {
	u := s.uniqueState()
	if u.known {
		return u
	}
	u.known = true
	for _, p := range s.places {
		endless, free, loose := a.p.Unique.Endless[p.node], true, true
		for f := p.frame; f != a.bottom && f != a.hidden; f = f.up {
			switch n := &a.p.Nodes[f.node]; {
			case f.repeat:
				endless = endless || a.p.Unique.Endless[n.Next] ||
					f.max != 0 && (a.p.Unique.Endless[n.Arg] || f.max < 0 && a.p.Unique.Through[n.Arg])
			case f.max == program.MarkItem:
				free, loose = free && endless, false
			case f.max == program.MarkArray:
				u.inside = true
			}
			if !f.repeat {
				endless = endless || a.p.Unique.Endless[f.node]
			}
		}
		u.free, u.loose = u.free || free, u.loose || loose
	}
	return u
}

// stepText returns the state and the text after b.
func (a *Automaton) stepText(s *state, t *items.Text, b byte) (*state, *items.Text) {
	to := a.step(s, b)
	if to == a.dead {
		return to, nil
	}
	t = t.Next(b, (b == '[' || b == '{') && to.unique != nil && to.unique.opens)
	if t.Repeats() {
		to = a.stepRepeated(s, b)
	}
	if t != nil && !a.findUnique(to).inside {
		t = nil
	}
	return to, t
}

// stepRepeated is step if the item that ends after b repeats one before it.
func (a *Automaton) stepRepeated(s *state, b byte) *state {
	u := s.uniqueState()
	if u.again == nil {
		u.again = make([]*state, a.classes)
		a.bytes += 8 * a.classes
	}
	k := a.classOf[b]
	if to := u.again[k]; to != nil {
		return to
	}
	a.repeats = true
	to, _ := a.follows(s, b)
	a.repeats = false
	u.again[k] = to
	return to
}

// afterRepeated is after if the item that ends with b repeats one before it.
func (a *Automaton) afterRepeated(s *state, b []byte) *state {
	for _, c := range b {
		if s == a.dead {
			break
		}
		s = a.stepRepeated(s, c)
	}
	return s
}
