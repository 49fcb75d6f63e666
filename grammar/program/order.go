package program

import (
	"context"
	"slices"
)

// successor returns the k-th node that a node continues at or calls.
func (p *Program) successor(i int32, k int) (int32, bool) {
	n := &p.Nodes[i]
	calls := n.Op == Call || n.Op == Repeat || n.Op == Skip
	switch {
	case (n.Op == Alt || n.Op == Switch) && k < int(n.Min):
		return p.alts[int(n.Arg)+k], true
	case n.Op == Alt || n.Op == Switch || n.Op == End:
	case k == 0:
		return n.Next, true
	case k == 1 && calls:
		return n.Arg, true
	}
	return 0, false
}

// findLive marks the nodes from which a finite string leads to the end.
func (p *Program) findLive(ctx context.Context) error {
	p.Live = make([]bool, len(p.Nodes))
	for changed := true; changed; {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed = false
		for _, i := range p.Order {
			if p.Live[i] {
				continue
			}
			n := &p.Nodes[i]
			live := false
			switch n.Op {
			case End:
				live = true
			case Byte, Token, Lazy, Skip, Distinct:
				live = p.Live[n.Next]
			case Alt, Switch:
				live = slices.ContainsFunc(p.AltsOf(n), func(a int32) bool { return p.Live[a] })
			case Call:
				live = p.Live[n.Arg] && p.Live[n.Next]
			case Repeat:
				live = p.Live[n.Next] && (n.Min == 0 || p.Live[n.Arg])
			}
			if live {
				p.Live[i], changed = true, true
			}
		}
	}
	return nil
}

// orderAlts puts the alternatives that take a byte or a token, and from which the end can be reached, first.
func (p *Program) orderAlts() {
	for _, i := range p.Order {
		n := &p.Nodes[i]
		if n.Op != Alt {
			continue
		}
		alts := p.AltsOf(n)
		for k, alt := range alts {
			if p.Nodes[alt].Takes() && p.Live[alt] {
				copy(alts[n.Max+1:k+1], alts[n.Max:k])
				alts[n.Max] = alt
				n.Max++
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
