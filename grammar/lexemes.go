package grammar

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
)

// A lexer splits a text into the longest lexemes before a parser sees them. Here both are one automaton, since the
// lexemes of all ways through the grammar end at the same bytes: where a byte continues any lexeme, the ways that would
// end theirs before it are dropped. A lazy lexeme ends where it first can, and drops all that go on.

// lexeme returns the node of a lexeme. Its bytes but the first are marked: they continue it.
func (c *compiler) lexeme(e *expr.Expr, next int32) int32 {
	c.lexes = true
	if e.Lazy {
		next = c.shared(node{op: nodeLazy, next: next})
	}
	first := int32(len(c.nodes))
	for range e.Graph.States {
		c.add(node{op: nodeAlt})
	}
	for i, s := range e.Graph.States {
		if c.err != nil {
			return 0
		}
		inside := int32(min(i, 1))
		alts := make([]int32, 0, len(s.Edges)+1)
		for _, edge := range s.Edges {
			alts = append(alts, c.shared(node{op: nodeByte, set: c.setID(edge.Set), next: first + edge.To, arg: inside}))
		}
		if s.Accept {
			alts = append(alts, next)
		}
		if c.err == nil {
			c.setAlts(first+int32(i), alts...)
		}
	}
	return first
}

// skip returns the node before which lexemes may be skipped.
func (c *compiler) skip(lexeme *expr.Expr, next int32) int32 {
	at := c.add(node{op: nodeSkip, next: next})
	body := c.place(lexeme, at)
	if c.err == nil {
		c.nodes[at].arg = body
	}
	if c.skips == 0 && next != 0 && c.err == nil {
		c.skips = -1
		end := c.skip(lexeme, 0)
		c.skips = c.nodes[end].arg
	}
	return at
}

// longest returns the seeds after b that continue a lexeme, if there are any, else all seeds.
func (a *automaton) longest(s *state, b byte, seeds []place) []place {
	var inside []place
	for _, p := range s.places {
		if n := &a.p.nodes[p.node]; n.op == nodeByte && n.arg == 1 && a.p.sets[n.set].Has(b) {
			inside = append(inside, place{n.next, p.frame})
		}
	}
	if len(inside) > 0 {
		return inside
	}
	return seeds
}

// trailing reports whether the seeds include what may be skipped at the end of a text.
func (a *automaton) trailing(seeds []place) bool {
	return slices.Contains(seeds, place{a.p.skips, a.bottom})
}
