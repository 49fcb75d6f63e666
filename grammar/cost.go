package grammar

import "math/bits"

// findCosts finds for each node the shortest way to the end of its rule over bytes that are tokens by themselves, and how
// many tokens it takes at least when tokens do not reach over calls and repetitions.
//
// So the bound of a place is a sum over its stack, and following it always makes it one less: with tokens that are on the
// shortest way there is always a next one as long as the bound is within the budget.
func (a *automaton) findCosts() {
	nodes := a.p.nodes
	a.costs = make([]int64, len(nodes))
	a.best = make([]int32, len(nodes))
	for i := range a.costs {
		a.costs[i] = infinite
	}
	a.costs[0] = 0
	usable := make([]int32, len(a.p.sets)) // a byte of each set, -1: none is a token
	for i, s := range a.p.sets {
		usable[i] = representative(s.and(a.v.singles))
	}
	for changed, round := true, 0; changed; round++ {
		changed = false
		for k := range nodes {
			i := sweep(k, len(nodes), round)
			n := &nodes[i]
			cost, best := int64(infinite), int32(0)
			switch n.op {
			case nodeEnd:
				continue
			case nodeByte:
				if best = usable[n.set]; best >= 0 {
					cost = sum(1, a.costs[n.next])
				}
			case nodeAlt:
				for k, alt := range n.alts {
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
	for i, live := range a.p.live {
		if live && a.costs[i] >= infinite {
			a.whole = false
		}
	}
	a.tokens = make([]int64, len(nodes))
	for i := range a.tokens {
		a.tokens[i] = -1
	}
	for i := range nodes {
		a.fewest(int32(i))
	}
}

// representative is a byte of a set that stands for it: a printable one if there is one. -1: the set is empty.
func representative(s byteSet) int32 {
	for b := int32(' '); b < 256; b++ {
		if s.has(byte(b)) {
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

// fewest fills a.tokens along the shortest way from a node. Ways can be as long as the program: no recursion along bytes.
func (a *automaton) fewest(node int32) int64 {
	if a.tokens[node] >= 0 {
		return a.tokens[node]
	}
	if a.costs[node] >= infinite {
		a.tokens[node] = infinite
		return infinite
	}
	nodes := a.p.nodes
	var way []int32 // nodes that take bytes, and alternatives between them
	at := node
	for a.tokens[at] < 0 {
		n := &nodes[at]
		if n.op == nodeByte {
			way = append(way, at)
			at = n.next
		} else if n.op == nodeAlt {
			way = append(way, at)
			at = n.alts[a.best[at]]
		} else {
			break
		}
	}
	if a.tokens[at] < 0 {
		switch n := &nodes[at]; n.op {
		case nodeEnd:
			a.tokens[at] = 0
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
	for i := len(way) - 1; i >= 0; i-- {
		n := &nodes[way[i]]
		if n.op == nodeAlt {
			a.tokens[way[i]] = a.tokens[n.alts[a.best[way[i]]]]
			continue
		}
		least := int64(infinite)
		t := int32(-1)
		for at := way[i]; ; {
			for nodes[at].op == nodeAlt {
				at = nodes[at].alts[a.best[at]]
			}
			if nodes[at].op != nodeByte {
				break
			}
			if t = a.v.all.child(t, byte(a.best[at])); t < 0 {
				break
			}
			at = nodes[at].next
			if a.v.all.nodes[t].token != noToken {
				least = min(least, sum(1, a.tokens[at]))
			}
		}
		a.tokens[way[i]] = least
	}
	return a.tokens[node]
}

// jointBytes is up to which length the shortest way is cut into tokens as one text.
const jointBytes = 512

// fits reports whether the text can be completed with so many tokens.
func (a *automaton) fits(s *state, tokens int64) bool {
	return s.tokens <= tokens || s.cost <= jointBytes && a.jointTokens(s) <= tokens
}

// jointTokens is the fewest tokens for one of the shortest ways from s, cut across all parts.
func (a *automaton) jointTokens(s *state) int64 {
	if s.joint > 0 || s.tokens == 0 {
		return min(s.joint, s.tokens)
	}
	least := s.tokens
	for _, p := range s.places {
		if a.costOf(p) <= jointBytes {
			least = min(least, a.cover(a.shortestText(p)))
		}
	}
	s.joint = least
	return least
}

// shortestText is what the shortest way from a place writes.
func (a *automaton) shortestText(at place) []byte {
	var out []byte
	for {
		if n := &a.p.nodes[at.node]; n.op == nodeByte {
			out = append(out, byte(a.best[at.node]))
			at.node = n.next
			continue
		}
		next, ok := a.follow(at)
		if !ok {
			return out
		}
		at = next
	}
}

// cover is the fewest tokens that write b.
func (a *automaton) cover(b []byte) int64 {
	least := make([]int64, len(b)+1)
	for i := len(b) - 1; i >= 0; i-- {
		least[i] = infinite
		t := int32(-1)
		for k := i; k < len(b); k++ {
			if t = a.v.all.child(t, b[k]); t < 0 {
				break
			}
			if a.v.all.nodes[t].token != noToken {
				least[i] = min(least[i], sum(1, least[k+1]))
			}
		}
	}
	return least[0]
}
