package program

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/recursion"
	"github.com/ingotml/ingot/internal/limits"
)

type placeKey struct {
	e    *expr.Expr
	next int32
}

type compiler struct {
	builder
	ctx      context.Context
	unique   bool
	required int // see Program
	skips    int32
	places   map[placeKey]int32
	starts   map[*expr.Rule]int32
	pending  []*expr.Rule
	nullable *recursion.Nullability
}

// Compile returns the program of the grammar e.
func Compile(ctx context.Context, e *expr.Expr) (*Program, error) {
	c := &compiler{builder: builder{setIDs: map[expr.ByteSet]int32{}, tokenIDs: map[string]int32{}}, ctx: ctx,
		places: map[placeKey]int32{}, starts: map[*expr.Rule]int32{}}
	var err error
	if c.nullable, err = recursion.Find(e); err != nil {
		return nil, err
	}
	if err := recursion.RemoveLeft(e, c.nullable); err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, Node{Op: End})
	start := c.place(e, 0)
	for len(c.pending) > 0 && c.err == nil {
		r := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		body := c.place(r.Body, 0)
		c.setAlts(c.starts[r], body)
	}
	if c.err != nil {
		return nil, c.err
	}
	p := &Program{Nodes: c.nodes, alts: c.alts, cases: c.cases, Sets: c.sets, Tokens: c.tokens, Lexes: c.lexes,
		Skips: c.skips, Start: start}
	p.Order = recursion.Order(len(p.Nodes), p.successor, start, max(p.Skips, 0))
	if err := p.findLive(ctx); err != nil {
		return nil, err
	}
	p.orderAlts()
	if !p.Live[start] {
		return nil, expr.Errorf(expr.ErrInvalid, "no finite text matches the grammar")
	}
	if c.unique {
		p.Unique, p.Required = findUniqueness(p), c.required
	}
	return p, nil
}

// place returns the node where e begins if next is its continuation.
func (c *compiler) place(e *expr.Expr, next int32) int32 {
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err != nil {
		return 0
	}
	if e.Op == expr.OpSet || e.Op == expr.OpText { // their nodes are shared anyway
		return c.build(e, next)
	}
	k := placeKey{e, next}
	if at, ok := c.places[k]; ok {
		return at
	}
	at := c.build(e, next)
	c.places[k] = at
	return at
}

func (c *compiler) build(e *expr.Expr, next int32) int32 {
	switch e.Op {
	case expr.OpSeq:
		for _, s := range slices.Backward(e.Subs) {
			next = c.place(s, next)
		}
		return next
	case expr.OpSet:
		return c.shared(Node{Op: Byte, Set: c.setID(e.Set), Next: next})
	case expr.OpText:
		for i := len(e.Text) - 1; i >= 0 && c.err == nil; i-- {
			next = c.shared(Node{Op: Byte, Set: c.byteID(e.Text[i]), Next: next})
		}
		return next
	case expr.OpAlt:
		alts := make([]int32, 0, len(e.Subs))
		for _, s := range e.Subs {
			if at := c.place(s, next); !slices.Contains(alts, at) {
				alts = append(alts, at)
			}
		}
		if len(alts) == 1 {
			return alts[0]
		}
		return c.addAlt(alts...)
	case expr.OpCall:
		return c.call(e.Rule, next, 0)
	case expr.OpGraph:
		return c.graph(e.Graph, next)
	case expr.OpToken:
		return c.token(e.Tokens, next)
	case expr.OpLexeme:
		return c.lexeme(e, next)
	case expr.OpSkip:
		return c.skip(e.Subs[0], next)
	case expr.OpCompared, expr.OpDistinct:
		return c.compared(e, next)
	}
	return c.repeat(e, next)
}

// call returns the node that runs a rule; char is 1 for the rule of a character, which calls no other.
func (c *compiler) call(r *expr.Rule, next, char int32) int32 {
	at, ok := c.starts[r]
	if !ok {
		at = c.add(Node{})
		c.starts[r] = at
		c.pending = append(c.pending, r)
	}
	return c.shared(Node{Op: Call, Arg: at, Next: next, Min: char})
}

// graph adds the states of an automaton, which continue at next where they accept. The edges of a state are one node:
// a state of many texts has a place for each automaton instead of one for each edge.
func (c *compiler) graph(g *expr.Graph, next int32) int32 {
	first := int32(len(c.nodes))
	for range g.States {
		c.add(Node{Op: Alt})
	}
	var alts []int32
	for i, s := range g.States {
		if c.err != nil {
			return 0
		}
		at := first + int32(i)
		if len(s.Calls) == 0 && !s.Accept {
			c.setSwitch(at, s.Edges, first)
			continue
		}
		alts = alts[:0]
		if len(s.Edges) > 0 {
			edges := c.add(Node{Op: Alt})
			c.setSwitch(edges, s.Edges, first)
			alts = append(alts, edges)
		}
		for _, call := range s.Calls {
			alts = append(alts, c.call(call.Rule, first+call.To, 1))
		}
		if s.Accept {
			alts = append(alts, next)
		}
		c.setAlts(at, alts...)
	}
	return first
}

// inlineRepeat is the largest number of nodes that a counted repetition is unrolled to.
const inlineRepeat = 32

func (c *compiler) repeat(e *expr.Expr, next int32) int32 {
	body, least, most := e.Subs[0], e.Min, e.Max
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		return c.fail(expr.Errorf(expr.ErrLimit, "a repetition count above %d", limits.GrammarRepeat))
	}
	// A body that matches the empty string could repeat forever without consuming a byte.
	if c.nullable.Of(body) {
		var err error
		if body, err = c.nullable.WithoutEmpty(body); err != nil {
			return c.fail(err)
		}
		least = 0
	}
	switch {
	case body.None() && least == 0:
		return next
	case body.None():
		return c.add(Node{Op: Alt})
	case most < 0 && least <= 1: // a loop
		loop := c.add(Node{Op: Alt})
		begin := c.place(body, loop)
		if c.err != nil {
			return 0
		}
		c.setAlts(loop, begin, next)
		if least == 1 {
			return begin
		}
		return loop
	case most >= 0 && (body.Op == expr.OpSet || body.Op == expr.OpText) && most*max(1, len(body.Text)) <= inlineRepeat:
		at := next
		for i := most; i > 0; i-- {
			begin := c.place(body, at)
			if i > least {
				at = c.addAlt(begin, next)
			} else {
				at = begin
			}
		}
		return at
	}
	begin := c.place(body, 0)
	return c.shared(Node{Op: Repeat, Arg: begin, Next: next, Min: int32(least), Max: int32(most)})
}

// compared returns the node of an array or an item.
func (c *compiler) compared(e *expr.Expr, next int32) int32 {
	c.unique = true
	n := Node{Op: Call, Max: MarkArray}
	if e.Op == expr.OpDistinct {
		n.Max, n.Next = MarkItem, c.shared(Node{Op: Distinct, Next: next})
	} else {
		n.Next = c.addAlt(next) // a tail call would have no frame
	}
	c.required = max(c.required, e.Min)
	n.Arg = c.place(e.Subs[0], 0)
	if c.err != nil {
		return 0
	}
	return c.shared(n)
}

// skip returns the node before which lexemes may be skipped.
func (c *compiler) skip(lexeme *expr.Expr, next int32) int32 {
	at := c.add(Node{Op: Skip, Next: next})
	body := c.place(lexeme, at)
	if c.err == nil {
		c.nodes[at].Arg = body
	}
	if c.skips == 0 && next != 0 && c.err == nil {
		c.skips = -1
		end := c.skip(lexeme, 0)
		c.skips = c.nodes[end].Arg
	}
	return at
}
