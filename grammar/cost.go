package grammar

import (
	"math/bits"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/trie"
)

// findCosts computes for each node the shortest path to the end of its rule, in bytes that are tokens by themselves.
// The fewest tokens that spell this path if no token crosses a call or repetition are computed where they are needed.
// The token bound of a place is therefore a sum over its stack, and the best token on the shortest path lowers it by
// exactly one. So while the bound is within the budget, there is always a next token.
func (a *automaton) findCosts() {
	nodes := a.p.nodes
	a.costs = slices.Repeat([]int64{infinite}, len(nodes))
	a.best = make([]int32, len(nodes))
	a.costs[0] = 0
	usable := make([]int32, len(a.p.sets)) // per set: a byte that is a token, or -1
	for i, s := range a.p.sets {
		usable[i] = representative(s.And(a.v.singles))
	}
	for changed := true; changed; {
		changed = false
		for _, i := range a.p.order {
			n := &nodes[i]
			cost, best := int64(infinite), int32(0)
			switch n.op {
			case nodeEnd:
				continue
			case nodeByte:
				if best = usable[n.set]; best >= 0 {
					cost = sum(1, a.costs[n.next])
				}
			case nodeSwitch:
				cases := a.p.casesOf(n)
				for k, alt := range a.p.altsOf(n) {
					if b := usable[cases[k]]; b >= 0 && sum(1, a.costs[alt]) < cost {
						cost, best = sum(1, a.costs[alt]), b
					}
				}
			case nodeLazy, nodeSkip, nodeDistinct:
				cost = a.costs[n.next]
			case nodeToken:
				cost = sum(1, a.costs[n.next])
				best = a.v.firstOf(a.tokenSets[n.arg])
			case nodeAlt:
				for k, alt := range a.p.altsOf(n) {
					if c := a.costs[alt]; c < cost {
						cost, best = c, int32(k)
					}
				}
			case nodeCall:
				cost = sum(a.costs[n.arg], a.costs[n.next])
			case nodeRepeat:
				cost = sum(times(int64(n.min), a.costs[n.arg]), a.costs[n.next])
			}
			if cost < a.costs[i] {
				a.costs[i], a.best[i], changed = cost, best, true
			}
		}
	}
	a.whole = true
	for _, i := range a.p.order {
		if a.p.live[i] && a.costs[i] >= infinite {
			a.whole = false
		}
	}
	a.tokens = slices.Repeat([]int64{-1}, len(nodes))
}

// bestNext returns the node after one that takes a byte or a token, on the shortest path.
func (a *automaton) bestNext(at int32) int32 { return a.p.after(&a.p.nodes[at], byte(a.best[at])) }

// representative returns a byte of s, a printable one if possible, or -1 if s is empty.
func representative(s expr.ByteSet) int32 {
	for b := int32(' '); b < 256; b++ {
		if s.Has(byte(b)) {
			return b
		}
	}
	for w := range s {
		if s[w] != 0 {
			return int32(w*64 + bits.TrailingZeros64(s[w]))
		}
	}
	return -1
}

// fewest returns a.tokens of a node, and fills it along the shortest path from there. A path can be as long as the
// program, so it does not recurse per byte.
func (a *automaton) fewest(node int32) int64 {
	if a.tokens[node] >= 0 {
		return a.tokens[node]
	}
	if a.costs[node] >= infinite {
		a.tokens[node] = infinite
		return infinite
	}
	nodes := a.p.nodes
	var path []int32 // byte, token and alternative nodes on the path
	at := node
	for a.tokens[at] < 0 {
		n := &nodes[at]
		if n.takes() {
			path = append(path, at)
			at = a.bestNext(at)
		} else if n.op == nodeAlt {
			path = append(path, at)
			at = a.p.altsOf(n)[a.best[at]]
		} else {
			break
		}
	}
	if a.tokens[at] < 0 {
		switch n := &nodes[at]; n.op {
		case nodeEnd:
			a.tokens[at] = 0
		case nodeLazy, nodeSkip, nodeDistinct:
			a.tokens[at] = a.fewest(n.next)
		case nodeCall:
			a.tokens[at] = sum(a.fewest(n.arg), a.fewest(n.next))
		case nodeRepeat:
			after := a.fewest(n.next)
			if n.min > 0 {
				after = sum(after, times(int64(n.min), a.fewest(n.arg)))
			}
			a.tokens[at] = after
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		n := &nodes[path[i]]
		if n.op == nodeAlt {
			a.tokens[path[i]] = a.tokens[a.p.altsOf(n)[a.best[path[i]]]]
			continue
		}
		if n.op == nodeToken {
			a.tokens[path[i]] = sum(1, a.tokens[n.next])
			continue
		}
		least := int64(infinite)
		t := int32(-1)
		for at := path[i]; ; {
			for nodes[at].op == nodeAlt {
				at = a.p.altsOf(&nodes[at])[a.best[at]]
			}
			if n := &nodes[at]; n.op != nodeByte && n.op != nodeSwitch {
				break
			}
			if t = a.v.all.Child(t, byte(a.best[at])); t < 0 {
				break
			}
			at = a.bestNext(at)
			if a.v.all.Nodes[t].Token != trie.None {
				least = min(least, sum(1, a.tokens[at]))
			}
		}
		a.tokens[path[i]] = least
	}
	return a.tokens[node]
}

// jointBytes bounds the length of a shortest path that is tokenized as one text.
const jointBytes = 512

// fits reports whether the text can be completed with the given number of tokens.
func (a *automaton) fits(s *state, tokens int64) bool {
	return s.tokens <= tokens || s.cost <= jointBytes && a.jointTokens(s) <= tokens
}

// jointTokens returns the fewest tokens that spell one of the shortest paths from s, with tokens that may cross calls
// and repetitions.
func (a *automaton) jointTokens(s *state) int64 {
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
func (a *automaton) coverPath(at place) (total int64) {
	var text []byte
	for {
		switch n := &a.p.nodes[at.node]; n.op {
		case nodeByte, nodeSwitch:
			text = append(text, byte(a.best[at.node]))
			at.node = a.bestNext(at.node)
		case nodeToken:
			total = sum(total, a.cover(text), 1)
			text = text[:0]
			at.node = n.next
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
func (a *automaton) shortestText(at place) []byte {
	var out []byte
	for {
		if n := &a.p.nodes[at.node]; n.op == nodeByte || n.op == nodeSwitch {
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
func (a *automaton) cover(b []byte) int64 {
	least := make([]int64, len(b)+1)
	for i := len(b) - 1; i >= 0; i-- {
		least[i] = infinite
		t := int32(-1)
		for k := i; k < len(b); k++ {
			if t = a.v.all.Child(t, b[k]); t < 0 {
				break
			}
			if a.v.all.Nodes[t].Token != trie.None {
				least[i] = min(least[i], sum(1, least[k+1]))
			}
		}
	}
	return least[0]
}
