package grammar

import "math/bits"

// mask is which tokens may follow a state.
type mask struct {
	bits  []uint32
	any   bool
	most  int64  // no allowed token leads to a state that needs more tokens
	roots []root // where the part of the stack that is cut away decides; none in a mask of a whole stack
}

// root is a node of the vocabulary's trie whose own token is decided, and those below are not.
type root struct {
	trie *trie
	node int32
	path []byte // from the root of the trie
}

// How stacks are cut. Masks of a stack without any caller are shared by all that is written inside; two callers decide what
// closes one or two brackets.
var cutDepths = [...]int{0, 2}

// countHorizon is above which a count of a cut stack is taken for endless. Tokens of more bytes are looked at with the true count.
const countHorizon = 16

// fewBytes is with how many next bytes a state is looked at directly, since most of the trie is out of reach.
const fewBytes = 24

// maskOf is the mask of a state, made when it is asked for first.
func (a *automaton) maskOf(s *state) *mask {
	if s.mask != nil {
		return s.mask
	}
	m := &mask{bits: make([]uint32, len(a.v.plain))}
	below, depth := s, 0
	if a.whole && a.nextBytes(s) > fewBytes {
		below, depth = a.cutBelow(s)
	}
	if below != s {
		base := a.maskOf(below)
		copy(m.bits, base.bits)
		m.any = base.any
		m.most = sum(base.most, a.cutAway(s, depth))
		for _, r := range base.roots {
			switch from := a.after(s, r.path); {
			case from == a.dead:
			case from.undecided(len(r.path)):
				m.roots = append(m.roots, r)
			default:
				a.walk(m, r.trie, r.node+1, r.trie.nodes[r.node].skip, len(r.path), from)
			}
		}
	} else if a.plainLoop(s) {
		if a.v.plains > 0 {
			copy(m.bits, a.v.plain)
			m.any, m.most = true, s.tokens
		}
		if s.rounded { // the counts decide on the long ones
			for i := range m.bits {
				m.bits[i] &^= a.v.longPlain[i]
			}
			a.walk(m, &a.v.long, 0, int32(len(a.v.long.nodes)), 0, s)
		}
		a.walk(m, &a.v.rest, 0, int32(len(a.v.rest.nodes)), 0, s)
	} else {
		a.walk(m, &a.v.all, 0, int32(len(a.v.all.nodes)), 0, s)
	}
	s.mask = m
	if a.work > maxWork {
		m.any = a.shortestStep(m.bits, s, -1) || m.any
	}
	a.bytes += 4*len(m.bits) + 64*len(m.roots)
	return m
}

// nextBytes is how many bytes may follow a state.
func (a *automaton) nextBytes(s *state) int {
	var all byteSet
	for _, p := range s.places {
		all = all.or(a.p.sets[a.p.nodes[p.node].set])
	}
	return bits.OnesCount64(all[0]) + bits.OnesCount64(all[1]) + bits.OnesCount64(all[2]) + bits.OnesCount64(all[3])
}

// undecided reports whether what follows so many bytes of a token takes a truer state to tell.
func (s *state) undecided(bytes int) bool { return s.unknown || s.rounded && bytes >= countHorizon }

// walk adds to m what tokens of t.nodes[from:to] are allowed when the bytes of the first depth lead to s.
func (a *automaton) walk(m *mask, t *trie, from, to int32, depth int, s *state) {
	var way [longestToken + 1]*state
	way[depth] = s
	for i := from; i < to && a.work <= maxWork; {
		n := &t.nodes[i]
		next := a.step(way[n.depth-1], n.key)
		if next == a.dead {
			i = n.skip
			continue
		}
		if n.token != noToken && next.tokens < infinite {
			t.set(m.bits, n)
			m.any = true
			m.most = max(m.most, next.tokens)
		}
		if next.undecided(int(n.depth)) {
			if n.skip > i+1 {
				m.roots = append(m.roots, root{trie: t, node: i, path: a.pathTo(t, i)})
			}
			i = n.skip
			continue
		}
		way[n.depth] = next
		i++
	}
}

// pathTo is the bytes from the root of a trie to a node: those of the next token at or below it.
func (a *automaton) pathTo(t *trie, at int32) []byte {
	i := at
	for t.nodes[i].token == noToken {
		i++
	}
	return a.v.tokens[t.first(&t.nodes[i])][:t.nodes[at].depth]
}

// cutState is s with stacks of at most so many calls, and with counts that are beyond every token rounded.
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
		if calls == 0 {
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

// cutBelow is the deepest cut of s that is another state, s itself if there is none.
func (a *automaton) cutBelow(s *state) (*state, int) {
	for i := len(cutDepths) - 1; i >= 0; i-- {
		if cut := a.cutState(s, cutDepths[i]); cut != s {
			return cut, cutDepths[i]
		}
	}
	return s, 0
}

// cutAway is how many tokens more than in the cut state may be needed in the true one.
func (a *automaton) cutAway(s *state, depth int) (most int64) {
	for _, p := range s.places {
		if p.frame.tokens >= infinite {
			return infinite
		}
		most = max(most, p.frame.tokens-a.cut(p.frame, depth).tokens)
	}
	return most
}

// plainLoop reports whether s is inside a JSON string: any whole plain characters lead back to it.
func (a *automaton) plainLoop(s *state) bool {
	if !s.looked {
		s.looked = true
		s.loops = a.loops(s)
	}
	return s.loops
}

func (a *automaton) loops(s *state) bool {
	for b := byte(' '); b < 0x80; b++ {
		if b != '"' && b != '\\' && a.fresh(b, ' ') && a.step(s, b) != s {
			return false
		}
	}
	// Table 3-7 of the Unicode standard: well-formed byte sequences.
	type lead struct{ from, to, low, high byte }
	for _, l := range []lead{{0xc2, 0xdf, 0x80, 0xbf}, {0xe0, 0xe0, 0xa0, 0xbf}, {0xe1, 0xec, 0x80, 0xbf}, {0xed, 0xed, 0x80, 0x9f},
		{0xee, 0xef, 0x80, 0xbf}, {0xf0, 0xf0, 0x90, 0xbf}, {0xf1, 0xf3, 0x80, 0xbf}, {0xf4, 0xf4, 0x80, 0x8f}} {
		for b := l.from; b <= l.to; b++ {
			if !a.fresh(b, l.from) {
				continue
			}
			at := a.step(s, b)
			for c := l.low; c <= l.high; c++ {
				if !a.fresh(c, l.low) {
					continue
				}
				end := a.step(at, c)
				for more := 1; more < utf8Length(b)-1; more++ {
					if end = a.continued(end); end == a.dead {
						break
					}
				}
				if end != s {
					return false
				}
			}
		}
	}
	return true
}

// fresh reports whether a byte is the first in a run from begin, or of another class than the one before.
func (a *automaton) fresh(b, begin byte) bool { return b == begin || a.classOf[b] != a.classOf[b-1] }

// continued is where every continuation byte leads, dead if that is not one state.
func (a *automaton) continued(s *state) *state {
	end := a.step(s, 0x80)
	for b := byte(0x81); b <= 0xbf; b++ {
		if a.fresh(b, 0x81) && a.step(s, b) != end {
			return a.dead
		}
	}
	return end
}

func utf8Length(lead byte) int {
	switch {
	case lead < 0xe0:
		return 2
	case lead < 0xf0:
		return 3
	}
	return 4
}

// within marks in dst the tokens after which the text can be completed with so many tokens less one.
func (a *automaton) within(dst []uint32, s *state, remaining int64) (any bool) {
	if remaining <= 0 {
		return false
	}
	t := &a.v.all
	if a.plainLoop(s) {
		if a.v.plains > 0 && a.fits(s, remaining-1) {
			copy(dst, a.v.plain)
			any = true
		}
		t = &a.v.rest
	}
	var way [longestToken + 1]*state
	way[0] = s
	for i := int32(0); int(i) < len(t.nodes) && a.work <= maxWork; {
		n := &t.nodes[i]
		next := a.step(way[n.depth-1], n.key)
		if next == a.dead {
			i = n.skip
			continue
		}
		if n.token != noToken && a.fits(next, remaining-1) {
			t.set(dst, n)
			any = true
		}
		way[n.depth] = next
		i++
	}
	if a.work > maxWork {
		any = a.shortestStep(dst, s, remaining) || any
	}
	return any
}

// shortestStep marks the tokens that lie on the shortest ways from s, of those after which the rest fits remaining tokens, the
// next one included; remaining < 0: all.
func (a *automaton) shortestStep(bits []uint32, s *state, remaining int64) (any bool) {
	for _, at := range s.places {
		t, next, ok := int32(-1), s, true
		for ok {
			n := &a.p.nodes[at.node]
			if n.op != nodeByte {
				at, ok = a.follow(at)
				continue
			}
			b := byte(a.best[at.node])
			if t = a.v.all.child(t, b); t < 0 {
				break
			}
			next = a.step(next, b)
			if n := &a.v.all.nodes[t]; n.token != noToken && (remaining < 0 || a.fits(next, remaining-1)) {
				a.v.all.set(bits, n)
				any = true
			}
			at.node = n.next
		}
	}
	return any
}
