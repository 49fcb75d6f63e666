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
	m := &mask{bits: make([]uint32, Words(a.v.Size()))}
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
	} else {
		take := func(next *state) bool {
			if next.tokens >= infinite {
				return false
			}
			m.any, m.most = true, max(m.most, next.tokens)
			return true
		}
		for _, t := range a.takePlain(m.bits, s, take) {
			a.walk(m, t, 0, int32(len(t.nodes)), 0, s)
		}
	}
	if a.work > maxWork {
		m.any = a.shortestStep(m.bits, s, -1) || m.any
	}
	a.bytes += 4*len(m.bits) + 64*len(m.roots)
	s.mask = m
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
		if t == &a.v.plains && next == way[n.depth-1] && !next.rounded && next.tokens < infinite && a.plainNext(next) == next {
			for i++; i < n.skip; i++ { // whatever follows
				if below := &t.nodes[i]; below.token != noToken {
					t.set(m.bits, below)
				}
			}
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

// within marks in dst the tokens after which the text can be completed with so many tokens less one.
func (a *automaton) within(dst []uint32, s *state, remaining int64) (any bool) {
	if remaining <= 0 {
		return false
	}
	for _, t := range a.takePlain(dst, s, func(next *state) bool {
		fits := a.fits(next, remaining-1)
		any = any || fits
		return fits
	}) {
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
