package grammar

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/items"
	"github.com/ingotml/ingot/grammar/recursion"
)

// Items, and names of properties, that must differ from those before them depend on the whole text of their array or
// object, which no state holds. The automaton therefore leaves it to the text (package items) whether the item that
// ends here repeats one before it: a state has up to two successors for a byte, and nodeDistinct is passed in one of
// them only. All else is shared with grammars without such items. A mask is the one of the state, without the tokens
// that complete a repeated item or leave no other (guard.go).

// Marks of the frames of calls, and of their nodes.
const (
	markArray = 1 // an array or an object that is compared; what is called begins behind its bracket
	markItem  = 2 // a comma and an item or a name, which returns to a nodeDistinct
)

// compared returns the node of an array or an item.
func (c *compiler) compared(e *expr.Expr, next int32) int32 {
	c.unique = true
	n := node{op: nodeCall, max: markArray}
	if e.Op == expr.OpDistinct {
		n.max, n.next = markItem, c.shared(node{op: nodeDistinct, next: next})
	} else {
		n.next = c.addAlt(next) // a tail call would have no frame
	}
	c.required = max(c.required, e.Min)
	n.arg = c.place(e.Subs[0], 0)
	if c.err != nil {
		return 0
	}
	return c.shared(n)
}

// uniqueness is what a program with such items needs to know of its nodes.
type uniqueness struct {
	endless []bool // infinitely many texts lead to the end of the rule
	through []bool // some text without an item of finitely many texts does
}

func findUniqueness(p *program) *uniqueness {
	u := &uniqueness{endless: make([]bool, len(p.nodes))}
	for {
		u.findThrough(p)
		if !u.grow(p) {
			return u
		}
	}
}

// bounded reports whether a call is an item of finitely many texts: an array has only so many of them.
func (u *uniqueness) bounded(n *node) bool {
	return n.op == nodeCall && n.max == markItem && !u.endless[n.arg]
}

func (u *uniqueness) findThrough(p *program) {
	u.through = make([]bool, len(p.nodes))
	for changed, round := true, 0; changed; round++ {
		changed = false
		for k := range p.nodes {
			i := sweep(k, len(p.nodes), round)
			if u.through[i] || !p.live[i] {
				continue
			}
			n := &p.nodes[i]
			is := false
			switch n.op {
			case nodeEnd:
				is = true
			case nodeAlt, nodeSwitch:
				is = slices.ContainsFunc(p.altsOf(n), func(a int32) bool { return u.through[a] })
			case nodeCall:
				is = !u.bounded(n) && u.through[n.arg] && u.through[n.next]
			case nodeRepeat:
				is = u.through[n.next] && (n.min == 0 || u.through[n.arg])
			default:
				is = u.through[n.next]
			}
			if is {
				u.through[i], changed = true, true
			}
		}
	}
}

// grow finds the nodes that lead to a loop, and reports whether there are new ones.
func (u *uniqueness) grow(p *program) (grown bool) {
	next := func(i int32) (out []int32) {
		n := &p.nodes[i]
		switch n.op {
		case nodeEnd:
		case nodeAlt, nodeSwitch:
			out = p.altsOf(n)
		case nodeCall:
			if out = []int32{n.arg}; !u.bounded(n) {
				out = append(out, n.next)
			}
		case nodeRepeat, nodeSkip:
			out = []int32{n.arg, n.next}
		default:
			out = []int32{n.next}
		}
		return out
	}
	loops := func(i int32) bool {
		n := &p.nodes[i]
		return n.op == nodeRepeat && n.max < 0 && u.through[n.arg] || n.op == nodeSkip
	}
	endless := make([]bool, len(p.nodes))
	recursion.Cycles(len(p.nodes), func(i int32) []int32 {
		if !p.live[i] {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(next(i)), func(to int32) bool { return !p.live[to] })
	}, func(i int32, cyclic bool, to []int32) {
		endless[i] = cyclic || p.live[i] && loops(i) || slices.ContainsFunc(to, func(k int32) bool { return endless[k] })
	})
	// A node after a bounded item leads on, though no cycle does.
	for changed, round := true, 0; changed; round++ {
		changed = false
		for k := range p.nodes {
			i := sweep(k, len(p.nodes), round)
			n := &p.nodes[i]
			if p.live[i] && !endless[i] && u.bounded(n) && endless[n.next] {
				endless[i], changed = true, true
			}
			if p.live[i] && !endless[i] && slices.ContainsFunc(next(int32(i)), func(to int32) bool { return endless[to] }) {
				endless[i], changed = true, true
			}
		}
	}
	grown = !slices.Equal(endless, u.endless)
	u.endless = endless
	return grown
}

// uniqueState is what only states of such grammars have.
type uniqueState struct {
	opens bool     // a bracket before this state begins an array whose items are compared
	again []*state // by byte class: the successor if the item that ends there repeats one before it

	known, inside, free, loose bool // see findUnique
}

func (s *state) uniqueState() *uniqueState {
	if s.unique == nil {
		s.unique = &uniqueState{}
	}
	return s.unique
}

// findUnique returns s.unique with what the stacks say. inside: some place is in an array whose items are compared.
// free: some place has infinitely many texts up to the end of each item around it. loose: some place is in no such
// item.
func (a *automaton) findUnique(s *state) *uniqueState {
	u := s.uniqueState()
	if u.known {
		return u
	}
	u.known = true
	for _, p := range s.places {
		endless, free, loose := a.p.unique.endless[p.node], true, true
		for f := p.frame; f != a.bottom && f != a.hidden; f = f.up {
			switch n := &a.p.nodes[f.node]; {
			case f.repeat:
				endless = endless || a.p.unique.endless[n.next] ||
					f.max != 0 && (a.p.unique.endless[n.arg] || f.max < 0 && a.p.unique.through[n.arg])
			case f.max == markItem:
				free, loose = free && endless, false
			case f.max == markArray:
				u.inside = true
			}
			if !f.repeat {
				endless = endless || a.p.unique.endless[f.node]
			}
		}
		u.free, u.loose = u.free || free, u.loose || loose
	}
	return u
}

// stepText returns the state and the text after b.
func (a *automaton) stepText(s *state, t *items.Text, b byte) (*state, *items.Text) {
	to := a.step(s, b)
	if to == a.dead {
		return to, nil
	}
	t = t.Next(b, (b == '[' || b == '{') && to.unique != nil && to.unique.opens)
	if t.Repeats() {
		to = a.stepRepeated(s, b)
	}
	if t != nil && !a.findUnique(to).inside {
		t = nil
	}
	return to, t
}

// stepRepeated is step if the item that ends after b repeats one before it.
func (a *automaton) stepRepeated(s *state, b byte) *state {
	u := s.uniqueState()
	if u.again == nil {
		u.again = make([]*state, a.classes)
		a.bytes += 8 * a.classes
	}
	k := a.classOf[b]
	if to := u.again[k]; to != nil {
		return to
	}
	a.repeats = true
	to, _ := a.follows(s, b)
	a.repeats = false
	u.again[k] = to
	return to
}

// afterRepeated is after if the item that ends with b repeats one before it.
func (a *automaton) afterRepeated(s *state, b []byte) *state {
	for _, c := range b {
		if s == a.dead {
			break
		}
		s = a.stepRepeated(s, c)
	}
	return s
}
