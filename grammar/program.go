package grammar

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/recursion"
	"github.com/ingotml/ingot/internal/limits"
)

// node is an instruction of a program.
type node struct {
	op   nodeOp
	set  int32 // nodeByte, nodeSwitch: index of the set of allowed bytes; nodeToken: of an empty set
	next int32 // nodeByte, nodeToken, nodeRepeat: the continuation; nodeCall: where the called rule returns to
	arg  int32 // nodeCall, nodeRepeat, nodeSkip: start of the rule or the body; nodeToken: index of the set of tokens;
	// nodeByte: 1 within a lexeme; nodeAlt, nodeSwitch: index of the first alternative
	// nodeRepeat; max < 0: unbounded. nodeCall: min is 1 for a character, max a mark of unique.go; nodeAlt: min is the
	// number of alternatives, max of those that take a byte or a token, which are first; nodeSwitch: min is their number,
	// max the index of the first one's set
	min, max int32
}

type nodeOp uint8

const (
	nodeEnd      nodeOp = iota // end of a rule or a repeated body; only node 0
	nodeByte                   // consumes a byte
	nodeSwitch                 // consumes a byte, which decides the alternative: their sets are disjoint
	nodeAlt                    // continues at any of its alternatives
	nodeCall                   // runs a rule, then continues at next
	nodeRepeat                 // runs a body min to max times, then continues at next
	nodeToken                  // consumes a token between two tokens, whatever its bytes are
	nodeLazy                   // the end of a lazy lexeme, continues at next
	nodeSkip                   // continues at next or, within the text, at arg
	nodeDistinct               // continues at next if the item before it repeats none; see unique.go
)

// takes reports whether a node consumes a byte or a token.
func (n *node) takes() bool { return n.op == nodeByte || n.op == nodeSwitch || n.op == nodeToken }

// program is a compiled grammar.
type program struct {
	nodes    []node
	alts     []int32 // of all nodes
	cases    []int32 // indices of the sets of all alternatives of a nodeSwitch
	sets     []expr.ByteSet
	tokens   []*expr.Tokens
	lexes    bool  // it has lexemes
	skips    int32 // what may be skipped where the text may end and may go on; 0: nothing
	start    int32
	order    []int32     // all that the start leads to, see recursion.Order
	live     []bool      // by node: a finite string leads to the end
	unique   *uniqueness // nil without items that must differ
	required int         // the most of them that an array needs
}

// altsOf returns the alternatives of a nodeAlt or a nodeSwitch.
func (p *program) altsOf(n *node) []int32 { return p.alts[n.arg : n.arg+n.min] }

// casesOf returns the indices of the sets of a nodeSwitch, by alternative.
func (p *program) casesOf(n *node) []int32 { return p.cases[n.max : n.max+n.min] }

// after returns where a node that takes b continues.
func (p *program) after(n *node, b byte) int32 {
	if n.op == nodeSwitch {
		for k, set := range p.casesOf(n) {
			if p.sets[set].Has(b) {
				return p.altsOf(n)[k]
			}
		}
	}
	return n.next
}

type placeKey struct {
	e    *expr.Expr
	next int32
}

type compiler struct {
	ctx      context.Context
	nodes    []node
	alts     []int32
	cases    []int32
	byteIDs  [256]int32 // of the sets of one byte, plus 1
	setIDs   map[expr.ByteSet]int32
	sets     []expr.ByteSet
	tokens   []*expr.Tokens
	tokenIDs map[string]int32
	lexes    bool
	unique   bool
	required int // see program
	skips    int32
	made     nodeTable
	places   map[placeKey]int32
	starts   map[*expr.Rule]int32
	pending  []*expr.Rule
	nullable *recursion.Nullability
	err      error
}

// compile returns the program of the grammar e.
func compile(ctx context.Context, e *expr.Expr) (*program, error) {
	c := &compiler{ctx: ctx, setIDs: map[expr.ByteSet]int32{}, places: map[placeKey]int32{},
		starts: map[*expr.Rule]int32{}, tokenIDs: map[string]int32{}}
	var err error
	if c.nullable, err = recursion.Find(e); err != nil {
		return nil, err
	}
	if err := recursion.RemoveLeft(e, c.nullable); err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, node{op: nodeEnd})
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
	p := &program{nodes: c.nodes, alts: c.alts, cases: c.cases, sets: c.sets, tokens: c.tokens, lexes: c.lexes,
		skips: c.skips, start: start}
	p.order = recursion.Order(len(p.nodes), p.successor, start, max(p.skips, 0))
	if err := p.findLive(ctx); err != nil {
		return nil, err
	}
	p.orderAlts()
	if !p.live[start] {
		return nil, expr.Errorf(ErrInvalid, "no finite text matches the grammar")
	}
	if c.unique {
		p.unique, p.required = findUniqueness(p), c.required
	}
	return p, nil
}

func (c *compiler) fail(err error) int32 {
	if c.err == nil {
		c.err = err
	}
	return 0
}

func (c *compiler) add(n node) int32 {
	if len(c.nodes)+len(c.cases) >= limits.GrammarPlaces {
		return c.fail(expr.Errorf(ErrLimit, "the grammar compiles to more than %d places", limits.GrammarPlaces))
	}
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1)
}

// addAlt adds a node with alternatives.
func (c *compiler) addAlt(alts ...int32) int32 {
	at := c.add(node{op: nodeAlt})
	c.setAlts(at, alts...)
	return at
}

// setAlts makes a node continue at these alternatives.
func (c *compiler) setAlts(at int32, alts ...int32) {
	if c.err == nil {
		c.nodes[at] = node{op: nodeAlt, arg: int32(len(c.alts)), min: int32(len(alts))}
		c.alts = append(c.alts, alts...)
	}
}

// shared returns a node equal to n.
func (c *compiler) shared(n node) int32 {
	at := c.made.find(c.nodes, &n)
	if at != 0 {
		return at
	}
	if at = c.add(n); c.err == nil {
		c.made.add(c.nodes, at)
	}
	return at
}

func (c *compiler) setID(s expr.ByteSet) int32 {
	if s.Len() == 1 {
		for b := range s.All() {
			return c.byteID(b)
		}
	}
	id, ok := c.setIDs[s]
	if !ok {
		id = c.addSet(s)
		c.setIDs[s] = id
	}
	return id
}

// byteID returns the index of the set of one byte.
func (c *compiler) byteID(b byte) int32 {
	if c.byteIDs[b] == 0 {
		c.byteIDs[b] = c.addSet(expr.ByteRange(b, b)) + 1
	}
	return c.byteIDs[b] - 1
}

func (c *compiler) addSet(s expr.ByteSet) int32 {
	c.sets = append(c.sets, s)
	return int32(len(c.sets) - 1)
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
		return c.shared(node{op: nodeByte, set: c.setID(e.Set), next: next})
	case expr.OpText:
		for i := len(e.Text) - 1; i >= 0 && c.err == nil; i-- {
			next = c.shared(node{op: nodeByte, set: c.byteID(e.Text[i]), next: next})
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
		at = c.add(node{})
		c.starts[r] = at
		c.pending = append(c.pending, r)
	}
	return c.shared(node{op: nodeCall, arg: at, next: next, min: char})
}

// graph adds the states of an automaton, which continue at next where they accept. The edges of a state are one node:
// a state of many texts has a place for each automaton instead of one for each edge.
func (c *compiler) graph(g *expr.Graph, next int32) int32 {
	first := int32(len(c.nodes))
	for range g.States {
		c.add(node{op: nodeAlt})
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
			edges := c.add(node{op: nodeAlt})
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

// setSwitch makes a node take the bytes of edges. Their states are the nodes from first on.
func (c *compiler) setSwitch(at int32, edges []expr.GraphEdge, first int32) {
	switch {
	case c.err != nil:
	case len(edges) == 1:
		c.nodes[at] = node{op: nodeByte, set: c.setID(edges[0].Set), next: first + edges[0].To}
	case len(edges) > 1:
		n := node{op: nodeSwitch, arg: int32(len(c.alts)), min: int32(len(edges)), max: int32(len(c.cases))}
		var all expr.ByteSet
		for _, e := range edges {
			all = all.Or(e.Set)
			c.alts, c.cases = append(c.alts, first+e.To), append(c.cases, c.setID(e.Set))
		}
		n.set = c.setID(all)
		c.nodes[at] = n
	}
}

// inlineRepeat is the largest number of nodes that a counted repetition is unrolled to.
const inlineRepeat = 32

func (c *compiler) repeat(e *expr.Expr, next int32) int32 {
	body, least, most := e.Subs[0], e.Min, e.Max
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		return c.fail(expr.Errorf(ErrLimit, "a repetition count above %d", limits.GrammarRepeat))
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
		return c.add(node{op: nodeAlt})
	case most < 0 && least <= 1: // a loop
		loop := c.add(node{op: nodeAlt})
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
	return c.shared(node{op: nodeRepeat, arg: begin, next: next, min: int32(least), max: int32(most)})
}
