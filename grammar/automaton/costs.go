package automaton

import (
	"math/bits"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/program"
	"github.com/ingotml/ingot/grammar/trie"
)

// findCosts computes for each node the shortest path to the end of its rule, in bytes that are tokens by themselves.
// The fewest tokens that spell this path if no token crosses a call or repetition are computed where they are needed.
// The token bound of a place is therefore a sum over its stack, and the best token on the shortest path lowers it by
// exactly one. So while the bound is within the budget, there is always a next token.
func (a *Automaton) findCosts() {
	nodes := a.p.Nodes
	a.costs = slices.Repeat([]int64{infinite}, len(nodes))
	a.best = make([]int32, len(nodes))
	a.costs[0] = 0
	usable := make([]int32, len(a.p.Sets)) // per set: a byte that is a token, or -1
	for i, s := range a.p.Sets {
		usable[i] = representative(s.And(a.v.Singles))
	}
	for changed := true; changed; {
		changed = false
		for _, i := range a.p.Order {
			n := &nodes[i]
			cost, best := int64(infinite), int32(0)
			switch n.Op {
			case program.End:
				continue
			case program.Byte:
				if best = usable[n.Set]; best >= 0 {
					cost = sum(1, a.costs[n.Next])
				}
			case program.Switch:
				cases := a.p.CasesOf(n)
				for k, alt := range a.p.AltsOf(n) {
					if b := usable[cases[k]]; b >= 0 && sum(1, a.costs[alt]) < cost {
						cost, best = sum(1, a.costs[alt]), b
					}
				}
			case program.Lazy, program.Skip, program.Distinct:
				cost = a.costs[n.Next]
			case program.Token:
				cost = sum(1, a.costs[n.Next])
				best = a.v.FirstOf(a.tokenSets[n.Arg])
			case program.Alt:
				for k, alt := range a.p.AltsOf(n) {
					if c := a.costs[alt]; c < cost {
						cost, best = c, int32(k)
					}
				}
			case program.Call:
				cost = sum(a.costs[n.Arg], a.costs[n.Next])
			case program.Repeat:
				cost = sum(times(int64(n.Min), a.costs[n.Arg]), a.costs[n.Next])
			}
			if cost < a.costs[i] {
				a.costs[i], a.best[i], changed = cost, best, true
			}
		}
	}
	a.whole = true
	for _, i := range a.p.Order {
		if a.p.Live[i] && a.costs[i] >= infinite {
			a.whole = false
		}
	}
	a.tokens = slices.Repeat([]int64{-1}, len(nodes))
}

// bestNext returns the node after one that takes a byte or a token, on the shortest path.
func (a *Automaton) bestNext(at int32) int32 { return a.p.After(&a.p.Nodes[at], byte(a.best[at])) }

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
func (a *Automaton) fewest(node int32) int64 {
	if a.tokens[node] >= 0 {
		return a.tokens[node]
	}
	if a.costs[node] >= infinite {
		a.tokens[node] = infinite
		return infinite
	}
	nodes := a.p.Nodes
	var path []int32 // byte, token and alternative nodes on the path
	at := node
	for a.tokens[at] < 0 {
		n := &nodes[at]
		if n.Takes() {
			path = append(path, at)
			at = a.bestNext(at)
		} else if n.Op == program.Alt {
			path = append(path, at)
			at = a.p.AltsOf(n)[a.best[at]]
		} else {
			break
		}
	}
	if a.tokens[at] < 0 {
		switch n := &nodes[at]; n.Op {
		case program.End:
			a.tokens[at] = 0
		case program.Lazy, program.Skip, program.Distinct:
			a.tokens[at] = a.fewest(n.Next)
		case program.Call:
			a.tokens[at] = sum(a.fewest(n.Arg), a.fewest(n.Next))
		case program.Repeat:
			after := a.fewest(n.Next)
			if n.Min > 0 {
				after = sum(after, times(int64(n.Min), a.fewest(n.Arg)))
			}
			a.tokens[at] = after
		}
	}
	for i := len(path) - 1; i >= 0; i-- {
		n := &nodes[path[i]]
		if n.Op == program.Alt {
			a.tokens[path[i]] = a.tokens[a.p.AltsOf(n)[a.best[path[i]]]]
			continue
		}
		if n.Op == program.Token {
			a.tokens[path[i]] = sum(1, a.tokens[n.Next])
			continue
		}
		least := int64(infinite)
		t := int32(-1)
		for at := path[i]; ; {
			for nodes[at].Op == program.Alt {
				at = a.p.AltsOf(&nodes[at])[a.best[at]]
			}
			if n := &nodes[at]; n.Op != program.Byte && n.Op != program.Switch {
				break
			}
			if t = a.v.All.Child(t, byte(a.best[at])); t < 0 {
				break
			}
			at = a.bestNext(at)
			if a.v.All.Nodes[t].Token != trie.None {
				least = min(least, sum(1, a.tokens[at]))
			}
		}
		a.tokens[path[i]] = least
	}
	return a.tokens[node]
}

// sum and times saturate at infinite.
func sum(parts ...int64) (total int64) {
	for _, p := range parts {
		if total += p; total >= infinite {
			return infinite
		}
	}
	return total
}

func times(n, each int64) int64 {
	if n == 0 {
		return 0
	}
	if each >= infinite/n {
		return infinite
	}
	return n * each
}
