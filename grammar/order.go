package grammar

import (
	"context"
	"slices"
)

// successor returns the k-th node that a node continues at or calls.
func (p *program) successor(i int32, k int) (int32, bool) {
	n := &p.nodes[i]
	calls := n.op == nodeCall || n.op == nodeRepeat || n.op == nodeSkip
	switch {
	case (n.op == nodeAlt || n.op == nodeSwitch) && k < int(n.min):
		return p.alts[int(n.arg)+k], true
	case n.op == nodeAlt || n.op == nodeSwitch || n.op == nodeEnd:
	case k == 0:
		return n.next, true
	case k == 1 && calls:
		return n.arg, true
	}
	return 0, false
}

// findLive marks the nodes from which a finite string leads to the end.
func (p *program) findLive(ctx context.Context) error {
	p.live = make([]bool, len(p.nodes))
	for changed := true; changed; {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed = false
		for _, i := range p.order {
			if p.live[i] {
				continue
			}
			n := &p.nodes[i]
			live := false
			switch n.op {
			case nodeEnd:
				live = true
			case nodeByte, nodeToken, nodeLazy, nodeSkip, nodeDistinct:
				live = p.live[n.next]
			case nodeAlt, nodeSwitch:
				live = slices.ContainsFunc(p.altsOf(n), func(a int32) bool { return p.live[a] })
			case nodeCall:
				live = p.live[n.arg] && p.live[n.next]
			case nodeRepeat:
				live = p.live[n.next] && (n.min == 0 || p.live[n.arg])
			}
			if live {
				p.live[i], changed = true, true
			}
		}
	}
	return nil
}

// orderAlts puts the alternatives that take a byte or a token, and from which the end can be reached, first.
func (p *program) orderAlts() {
	for _, i := range p.order {
		n := &p.nodes[i]
		if n.op != nodeAlt {
			continue
		}
		alts := p.altsOf(n)
		for k, alt := range alts {
			if p.nodes[alt].takes() && p.live[alt] {
				copy(alts[n.max+1:k+1], alts[n.max:k])
				alts[n.max] = alt
				n.max++
			}
		}
	}
}

// sweep returns the k-th of n indices of a round. Rounds alternate direction, so that chains in either direction
// converge in few rounds.
func sweep(k, n, round int) int {
	if round%2 == 0 {
		return k
	}
	return n - 1 - k
}
