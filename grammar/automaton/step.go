package automaton

import (
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/program"
)

// step returns the state after b, dead if the grammar does not allow it.
func (a *Automaton) step(s *state, b byte) *state {
	if k := a.classOf[b]; int(k) < len(s.next) {
		if to := s.next[k]; to != nil {
			return to
		}
	}
	return a.findStep(s, b)
}

// findStep is step for a class of bytes that is not known yet.
func (a *Automaton) findStep(s *state, b byte) *state {
	if s == a.dead {
		return s
	}
	if s.next == nil {
		s.next = make([]*state, a.classes)
		a.bytes += 8 * a.classes
	}
	to, same := a.follows(s, b)
	a.leadTo(s, same, to)
	return to
}

// follows computes the state after b, and the classes of all bytes that lead there for the same reason.
func (a *Automaton) follows(s *state, b byte) (to *state, same expr.ByteSet) {
	k := a.classOf[b]
	var room [8]place
	seeds := room[:0]
	same = everyClass // the classes that the same places take
	var others expr.ByteSet
	for _, p := range s.places {
		n := &a.p.Nodes[p.node]
		if taken := a.takes[n.Set]; taken.Has(k) {
			next := n.Next
			if n.Op == program.Switch {
				next, taken = a.chosen(n, k)
			}
			seeds = append(seeds, place{next, p.frame})
			same = same.And(taken)
		} else {
			others = others.Or(taken)
		}
	}
	same = same.Without(others)
	if a.p.Lexes {
		seeds = a.longest(s, b, seeds)
	}
	if len(seeds) == 0 {
		return a.dead, same
	}
	return a.close(seeds), same
}

// chosen returns where a Switch continues after a class of bytes that it takes, and all classes that lead there.
func (a *Automaton) chosen(n *program.Node, class uint8) (next int32, classes expr.ByteSet) {
	alts := a.p.AltsOf(n)
	for k, set := range a.p.CasesOf(n) {
		if classes = a.takes[set]; classes.Has(class) {
			return alts[k], classes
		}
	}
	panic("a class of a nodeSwitch without an alternative")
}

// longest returns the seeds after b that continue a lexeme, if there are any, else all seeds.
func (a *Automaton) longest(s *state, b byte, seeds []place) []place {
	var inside []place
	for _, p := range s.places {
		if n := &a.p.Nodes[p.node]; n.Op == program.Byte && n.Arg == 1 && a.p.Sets[n.Set].Has(b) {
			inside = append(inside, place{n.Next, p.frame})
		}
	}
	if len(inside) > 0 {
		return inside
	}
	return seeds
}

// following returns the bytes that may follow a state.
func (a *Automaton) following(s *state) (all expr.ByteSet) {
	for _, p := range s.places {
		all = all.Or(a.p.Sets[a.p.Nodes[p.node].Set])
	}
	return all
}

// after returns the state after all bytes of b.
func (a *Automaton) after(s *state, b []byte) *state {
	for _, c := range b {
		if s = a.step(s, c); s == a.dead {
			break
		}
	}
	return s
}
