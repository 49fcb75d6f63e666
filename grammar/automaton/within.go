package automaton

import (
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/trie"
	"github.com/ingotml/ingot/grammar/vocabulary"
)

// within marks in dst the tokens after which the text can be completed with remaining-1 tokens.
func (a *Automaton) within(dst []uint32, s *state, remaining int64) (any bool) {
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
		var path [vocabulary.LongestToken + 1]*state
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
func (a *Automaton) shortestStep(bits []uint32, s *state, remaining int64) (any bool) {
	for _, at := range s.places {
		t, next, ok := int32(-1), s, true
		for ok {
			n := &a.p.Nodes[at.node]
			if n.Op == program.Token { // takeNamed takes those of s; others are not part of one token
				break
			}
			if n.Op != program.Byte && n.Op != program.Switch {
				at, ok = a.follow(at)
				continue
			}
			b := byte(a.best[at.node])
			if t = a.v.All.Child(t, b); t < 0 {
				break
			}
			next = a.step(next, b)
			if n := &a.v.All.Nodes[t]; n.Token != trie.None && (remaining < 0 || a.fits(next, remaining-1)) {
				a.v.All.Set(bits, n)
				any = true
			}
			at.node = a.bestNext(at.node)
		}
	}
	return any
}
