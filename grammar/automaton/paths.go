package automaton

import (
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/trie"
)

// jointBytes bounds the length of a shortest path that is tokenized as one text.
const jointBytes = 512

// fits reports whether the text can be completed with the given number of tokens.
func (a *Automaton) fits(s *state, tokens int64) bool {
	return s.tokens <= tokens || s.cost <= jointBytes && a.jointTokens(s) <= tokens
}

// jointTokens returns the fewest tokens that spell one of the shortest paths from s, with tokens that may cross calls
// and repetitions.
func (a *Automaton) jointTokens(s *state) int64 {
	if s.joint > 0 || s.tokens == 0 {
		return min(s.joint, s.tokens)
	}
	least := s.tokens
	for _, p := range s.places {
		if a.costOf(p) <= jointBytes {
			least = min(least, a.coverPath(p))
		}
	}
	s.joint = least
	return least
}

// coverPath returns the fewest tokens that spell the shortest path from a place.
func (a *Automaton) coverPath(at place) (total int64) {
	var text []byte
	for {
		switch n := &a.p.Nodes[at.node]; n.Op {
		case program.Byte, program.Switch:
			text = append(text, byte(a.best[at.node]))
			at.node = a.bestNext(at.node)
		case program.Token:
			total = sum(total, a.cover(text), 1)
			text = text[:0]
			at.node = n.Next
		default:
			next, ok := a.follow(at)
			if !ok {
				return sum(total, a.cover(text))
			}
			at = next
		}
	}
}

// shortestText returns the bytes on the shortest path from a place, in a grammar that names no tokens.
func (a *Automaton) shortestText(at place) []byte {
	var out []byte
	for {
		if n := &a.p.Nodes[at.node]; n.Op == program.Byte || n.Op == program.Switch {
			out = append(out, byte(a.best[at.node]))
			at.node = a.bestNext(at.node)
			continue
		}
		next, ok := a.follow(at)
		if !ok {
			return out
		}
		at = next
	}
}

// cover returns the fewest tokens that spell b.
func (a *Automaton) cover(b []byte) int64 {
	least := make([]int64, len(b)+1)
	for i := len(b) - 1; i >= 0; i-- {
		least[i] = infinite
		t := int32(-1)
		for k := i; k < len(b); k++ {
			if t = a.v.All.Child(t, b[k]); t < 0 {
				break
			}
			if a.v.All.Nodes[t].Token != trie.None {
				least[i] = min(least[i], sum(1, least[k+1]))
			}
		}
	}
	return least[0]
}

// coverFirst returns the first of the fewest tokens that spell b.
func (a *Automaton) coverFirst(b []byte) (id int32, ok bool) {
	t, least := int32(-1), int64(infinite)
	for k := range b {
		if t = a.v.All.Child(t, b[k]); t < 0 {
			break
		}
		if n := &a.v.All.Nodes[t]; n.Token != trie.None {
			if rest := a.cover(b[k+1:]); rest < least {
				id, ok, least = a.v.All.First(n), true, rest
			}
		}
	}
	return id, ok
}
