package grammar

import (
	"github.com/ingotml/ingot/grammar/trie"
	"slices"
)

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

// maxAround bounds the nodes that walkAround visits.
const maxAround = 1 << 14

// walkAround fills m with the mask of free, and walks only where a token leads from s to another state than from free.
// It reports whether these are few; otherwise m is empty.
func (a *automaton) walkAround(m *mask, s, free *state) bool {
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
	visited := 0
	for i, end := int32(0), int32(len(t.Nodes)); i < end; {
		n := &t.Nodes[i]
		if a.work > maxWork { // what is not known to be allowed is not
			t.ClearAll(m.bits, i, end)
			return true
		}
		if visited++; visited > maxAround {
			clear(m.bits)
			m.any, m.most, m.subtrees = false, 0, nil
			return false
		}
		next, beside := a.step(path[n.Depth-1], n.Key), a.step(other[n.Depth-1], n.Key)
		switch {
		case next == beside:
			i = n.Skip
			continue
		case next == a.dead, beside == a.dead, next.undecided(int(n.Depth)), beside.undecided(int(n.Depth)):
			t.ClearAll(m.bits, i, n.Skip)
			if next != a.dead {
				a.walk(m, t, i, n.Skip, &path)
			}
			i = n.Skip
			continue
		case n.Token == trie.None:
		case next.tokens < infinite:
			t.Set(m.bits, n)
			m.any, m.most = true, max(m.most, next.tokens)
		default:
			t.ClearAll(m.bits, i, i+1)
		}
		path[n.Depth], other[n.Depth] = next, beside
		i++
	}
	return true
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
		trie.Or(m.bits, of)
	}
	trie.Or(m.bits, a.v.longPlain)
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
