package program

import (
	"slices"

	"github.com/ingotml/ingot/grammar/recursion"
)

func findUniqueness(p *Program) *Uniqueness {
	u := &Uniqueness{Endless: make([]bool, len(p.Nodes))}
	for {
		u.findThrough(p)
		if !u.grow(p) {
			return u
		}
	}
}

// bounded reports whether a call is an item of finitely many texts: an array has no more of them than that.
func (u *Uniqueness) bounded(n *Node) bool {
	return n.Op == Call && n.Max == MarkItem && !u.Endless[n.Arg]
}

func (u *Uniqueness) findThrough(p *Program) {
	u.Through = make([]bool, len(p.Nodes))
	for changed, round := true, 0; changed; round++ {
		changed = false
		for k := range p.Nodes {
			i := sweep(k, len(p.Nodes), round)
			if u.Through[i] || !p.Live[i] {
				continue
			}
			n := &p.Nodes[i]
			is := false
			switch n.Op {
			case End:
				is = true
			case Alt, Switch:
				is = slices.ContainsFunc(p.AltsOf(n), func(a int32) bool { return u.Through[a] })
			case Call:
				is = !u.bounded(n) && u.Through[n.Arg] && u.Through[n.Next]
			case Repeat:
				is = u.Through[n.Next] && (n.Min == 0 || u.Through[n.Arg])
			default:
				is = u.Through[n.Next]
			}
			if is {
				u.Through[i], changed = true, true
			}
		}
	}
}

// grow finds the nodes that lead to a loop, and reports whether there are new ones.
func (u *Uniqueness) grow(p *Program) (grown bool) {
	next := func(i int32) (out []int32) {
		n := &p.Nodes[i]
		switch n.Op {
		case End:
		case Alt, Switch:
			out = p.AltsOf(n)
		case Call:
			if out = []int32{n.Arg}; !u.bounded(n) {
				out = append(out, n.Next)
			}
		case Repeat, Skip:
			out = []int32{n.Arg, n.Next}
		default:
			out = []int32{n.Next}
		}
		return out
	}
	loops := func(i int32) bool {
		n := &p.Nodes[i]
		return n.Op == Repeat && n.Max < 0 && u.Through[n.Arg] || n.Op == Skip
	}
	endless := make([]bool, len(p.Nodes))
	recursion.Cycles(len(p.Nodes), func(i int32) []int32 {
		if !p.Live[i] {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(next(i)), func(to int32) bool { return !p.Live[to] })
	}, func(i int32, cyclic bool, to []int32) {
		endless[i] = cyclic || p.Live[i] && loops(i) || slices.ContainsFunc(to, func(k int32) bool { return endless[k] })
	})
	// A node after a bounded item leads on, though no cycle does.
	for changed, round := true, 0; changed; round++ {
		changed = false
		for k := range p.Nodes {
			i := sweep(k, len(p.Nodes), round)
			n := &p.Nodes[i]
			if p.Live[i] && !endless[i] && u.bounded(n) && endless[n.Next] {
				endless[i], changed = true, true
			}
			if p.Live[i] && !endless[i] && slices.ContainsFunc(next(int32(i)), func(to int32) bool { return endless[to] }) {
				endless[i], changed = true, true
			}
		}
	}
	grown = !slices.Equal(endless, u.Endless)
	u.Endless = endless
	return grown
}
