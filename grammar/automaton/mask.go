package automaton

import (
	"slices"

	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// In the name of a property that may be another than the listed ones, most characters lead to one state, in which any
// text may follow, and a few continue a listed name. The mask is that of this state, but for the tokens that begin with
// these few.

// freeNext returns the state that most characters lead to from s if every plain text may follow there, or nil.
func (a *Automaton) freeNext(s *state) *state {
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
func (a *Automaton) walkAround(m *mask, s, free *state) bool {
	base := a.maskOf(free)
	copy(m.bits, base.bits)
	m.any, m.most = base.any, base.most
	for _, r := range base.subtrees {
		if to := a.after(free, r.path); to != a.dead && to == a.after(s, r.path) {
			m.subtrees = append(m.subtrees, r)
		}
	}
	t := &a.v.All
	var path, other [vocabulary.LongestToken + 1]*state
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

// maxDirectBytes is the number of possible next bytes up to which a mask is computed with the full stack: most of the
// trie is then out of reach.
const maxDirectBytes = 24

// maskOf returns the mask of a state, computed on first use.
func (a *Automaton) maskOf(s *state) *mask {
	if s.mask != nil {
		return s.mask
	}
	s.busy = true
	defer func() { s.busy = false }()
	m := &mask{bits: make([]uint32, vocabulary.Words(a.v.Size()))}
	below, depth := s, 0
	if a.whole && a.following(s).Len() > maxDirectBytes {
		below, depth = a.cutBelow(s)
	}
	if below != s {
		base := a.maskOf(below)
		copy(m.bits, base.bits)
		m.any = base.any
		m.most = sum(base.most, a.cutAway(s, depth))
		var path [vocabulary.LongestToken + 1]*state
		for _, r := range base.subtrees {
			switch from := a.after(s, r.path); {
			case from == a.dead:
			case from.undecided(len(r.path)):
				m.subtrees = append(m.subtrees, r)
			default:
				path[len(r.path)] = from
				a.walk(m, r.trie, r.node+1, r.trie.Nodes[r.node].Skip, &path)
			}
		}
	} else {
		take := func(next *state) bool {
			if next.tokens >= infinite {
				return false
			}
			m.any, m.most = true, max(m.most, next.tokens)
			return true
		}
		tries := []*trie.Trie{&a.v.Rest}
		if following := a.following(s); following.Len() <= maxDirectBytes && a.walkFew(m, s, following) {
			tries = nil
		} else if free := a.freeNext(s); free != nil && !free.busy && a.walkAround(m, s, free) {
			tries = nil
		} else if most, ok := a.totalNext(s); ok {
			a.takeAllPlain(m, most)
		} else {
			tries = a.takePlain(m.bits, s, take)
		}
		for _, t := range tries {
			a.walkAll(m, t, s)
		}
		a.takeNamed(m.bits, s, take)
	}
	if a.work > maxWork {
		m.any = a.shortestStep(m.bits, s, -1) || m.any
	}
	a.bytes += 4*len(m.bits) + 64*len(m.subtrees)
	s.mask = m
	return m
}
