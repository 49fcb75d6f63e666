package automaton

// cutDepths are the numbers of calls that truncated stacks keep. All text inside a rule shares the masks without
// callers; two callers decide the tokens that close one or two brackets.
var cutDepths = [...]int{0, 2}

// cutState returns s with stacks truncated to depth calls, and with counts that no token can reach rounded.
func (a *Automaton) cutState(s *state, depth int) *state {
	changed := false
	places := make([]place, len(s.places))
	for i, p := range s.places {
		places[i] = place{p.node, a.cut(p.frame, depth)}
		changed = changed || places[i].frame != p.frame
	}
	if !changed {
		return s
	}
	return a.intern(places, s.accept, s.unknown)
}

func (a *Automaton) cut(f *frame, calls int) *frame {
	if f == a.bottom || f == a.hidden {
		return f
	}
	if !f.repeat {
		switch {
		case f.min == 1: // the state that follows a character belongs to the same rule
			return a.push(a.cut(f.up, calls), f.node, 1, 0, false, false)
		case calls == 0:
			return a.hidden
		}
		return a.push(a.cut(f.up, calls-1), f.node, 0, 0, false, false)
	}
	least, most, rounded := f.min, f.max, f.rounded
	if least > countHorizon+1 {
		least, rounded = countHorizon+1, true
	}
	if most > countHorizon {
		most, rounded = -1, true
	}
	return a.push(a.cut(f.up, calls), f.node, least, most, true, rounded)
}

// cutBelow returns s truncated to the largest of cutDepths that changes it, and that depth; s itself if none does.
func (a *Automaton) cutBelow(s *state) (*state, int) {
	for i := len(cutDepths) - 1; i >= 0; i-- {
		if cut := a.cutState(s, cutDepths[i]); cut != s {
			return cut, cutDepths[i]
		}
	}
	return s, 0
}

// cutAway bounds how many more tokens the full state may need than the truncated one.
func (a *Automaton) cutAway(s *state, depth int) (most int64) {
	for _, p := range s.places {
		if p.frame.tokens >= infinite {
			return infinite
		}
		most = max(most, p.frame.tokens-a.cut(p.frame, depth).tokens)
	}
	return most
}
