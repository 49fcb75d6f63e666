package grammar

import (
	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// mask is the set of tokens that may follow a state.
type mask struct {
	bits     []uint32
	any      bool
	most     int64     // upper bound of state.tokens after any allowed token
	subtrees []subtree // parts that the truncated stack cannot decide; empty for full stacks
}

// subtree is the part of a vocabulary's trie at a node. The token of the node is decided; those below it are not.
type subtree struct {
	trie *trie.Trie
	node int32
	path []byte // from the root of the trie
}

// cutDepths are the numbers of calls that truncated stacks keep. All text inside a rule shares the masks without
// callers; two callers decide the tokens that close one or two brackets.
var cutDepths = [...]int{0, 2}

// countHorizon is the count above which a truncated stack treats a repetition as unbounded. Longer tokens are walked
// with the exact count.
const countHorizon = 16

// maxDirectBytes is the number of possible next bytes up to which a mask is computed with the full stack: most of the
// trie is then out of reach.
const maxDirectBytes = 24

// maskOf returns the mask of a state, computed on first use.
func (a *automaton) maskOf(s *state) *mask {
	if s.mask != nil {
		return s.mask
	}
	s.busy = true
	defer func() { s.busy = false }()
	m := &mask{bits: make([]uint32, Words(a.v.Size()))}
	below, depth := s, 0
	if a.whole && a.following(s).Len() > maxDirectBytes {
		below, depth = a.cutBelow(s)
	}
	if below != s {
		base := a.maskOf(below)
		copy(m.bits, base.bits)
		m.any = base.any
		m.most = sum(base.most, a.cutAway(s, depth))
		var path [longestToken + 1]*state
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
		tries := []*trie.Trie{&a.v.rest}
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

// following returns the bytes that may follow a state.
func (a *automaton) following(s *state) (all expr.ByteSet) {
	for _, p := range s.places {
		all = all.Or(a.p.sets[a.p.nodes[p.node].set])
	}
	return all
}

// maxFew bounds the nodes below the bytes that walkFew begins with.
const maxFew = 1 << 13

// walkFew walks the tokens that begin with one of a few bytes, and reports whether these are few, too: many words begin
// with a space.
func (a *automaton) walkFew(m *mask, s *state, first expr.ByteSet) bool {
	var path [longestToken + 1]*state
	path[0] = s
	t := &a.v.all
	size := int32(0)
	for b := range first.All() {
		if at := t.Roots[b]; at >= 0 {
			size += t.Nodes[at].Skip - at
		}
	}
	if size > maxFew {
		return false
	}
	for b := range first.All() {
		if at := t.Roots[b]; at >= 0 {
			a.walk(m, t, at, t.Nodes[at].Skip, &path)
		}
	}
	return true
}

// walkAll walks all tokens of a trie.
func (a *automaton) walkAll(m *mask, t *trie.Trie, s *state) {
	if t.Kinds != nil {
		a.walkKinds(m, t.Kinds, s)
		return
	}
	var path [longestToken + 1]*state
	path[0] = s
	a.walk(m, t, 0, int32(len(t.Nodes)), &path)
}

// undecided reports whether only a less truncated state can decide what follows the given number of bytes of a token.
func (s *state) undecided(bytes int) bool { return s.unknown || s.rounded && bytes >= countHorizon }

// walk adds the allowed tokens of t.Nodes[from:to] to m. path has the states after the bytes before these nodes.
func (a *automaton) walk(m *mask, t *trie.Trie, from, to int32, path *[longestToken + 1]*state) {
	nodes := t.Nodes
	for i := from; i < to && a.work <= maxWork; {
		n := &nodes[i]
		next := a.step(path[n.Depth-1], n.Key)
		if next == a.dead {
			i = n.Skip
			continue
		}
		if n.Token != trie.None && next.tokens < infinite {
			t.Set(m.bits, n)
			m.any, m.most = true, max(m.most, next.tokens)
		}
		switch {
		case n.Skip == i+1:
			i++
			continue
		case next.simple && (n.Skip-i <= manyNodes || !a.returns(a.front(next), t.Below[i])), !next.simple &&
			!next.undecided(int(n.Depth)):
			path[n.Depth] = next
			i++
			continue
		case next.simple: // every continuation is allowed
			t.SetAll(m.bits, i+1, n.Skip)
			m.any, m.most = true, max(m.most, next.tokens)
		case n.Skip > i+1:
			m.subtrees = append(m.subtrees, subtree{trie: t, node: i, path: t.PathTo(i)})
		}
		i = n.Skip
	}
}

// manyNodes is the size of a subtree from which on it is worth asking whether all of it is allowed.
const manyNodes = 32

// cutState returns s with stacks truncated to depth calls, and with counts that no token can reach rounded.
func (a *automaton) cutState(s *state, depth int) *state {
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

func (a *automaton) cut(f *frame, calls int) *frame {
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
func (a *automaton) cutBelow(s *state) (*state, int) {
	for i := len(cutDepths) - 1; i >= 0; i-- {
		if cut := a.cutState(s, cutDepths[i]); cut != s {
			return cut, cutDepths[i]
		}
	}
	return s, 0
}

// cutAway bounds how many more tokens the full state may need than the truncated one.
func (a *automaton) cutAway(s *state, depth int) (most int64) {
	for _, p := range s.places {
		if p.frame.tokens >= infinite {
			return infinite
		}
		most = max(most, p.frame.tokens-a.cut(p.frame, depth).tokens)
	}
	return most
}

// within marks in dst the tokens after which the text can be completed with remaining-1 tokens.
func (a *automaton) within(dst []uint32, s *state, remaining int64) (any bool) {
	if remaining <= 0 {
		return false
	}
	take := func(next *state) bool {
		fits := a.fits(next, remaining-1)
		any = any || fits
		return fits
	}
	a.takeNamed(dst, s, take)
	for _, t := range a.takePlain(dst, s, take) {
		var path [longestToken + 1]*state
		path[0] = s
		for i := int32(0); int(i) < len(t.Nodes) && a.work <= maxWork; {
			n := &t.Nodes[i]
			next := a.step(path[n.Depth-1], n.Key)
			if next == a.dead {
				i = n.Skip
				continue
			}
			if n.Token != trie.None && a.fits(next, remaining-1) {
				t.Set(dst, n)
				any = true
			}
			path[n.Depth] = next
			i++
		}
	}
	if a.work > maxWork {
		any = a.shortestStep(dst, s, remaining) || any
	}
	return any
}

// shortestStep marks the tokens on the shortest paths from s, if the rest then fits into remaining tokens, including
// the marked one; remaining < 0: no limit.
func (a *automaton) shortestStep(bits []uint32, s *state, remaining int64) (any bool) {
	for _, at := range s.places {
		t, next, ok := int32(-1), s, true
		for ok {
			n := &a.p.nodes[at.node]
			if n.op == nodeToken { // takeNamed takes those of s; others are not part of one token
				break
			}
			if n.op != nodeByte && n.op != nodeSwitch {
				at, ok = a.follow(at)
				continue
			}
			b := byte(a.best[at.node])
			if t = a.v.all.Child(t, b); t < 0 {
				break
			}
			next = a.step(next, b)
			if n := &a.v.all.Nodes[t]; n.Token != trie.None && (remaining < 0 || a.fits(next, remaining-1)) {
				a.v.all.Set(bits, n)
				any = true
			}
			at.node = a.bestNext(at.node)
		}
	}
	return any
}
