package grammar

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/limits"
)

// node is one place in a program.
type node struct {
	op       nodeOp
	set      int32   // nodeByte: index of the bytes that may come
	next     int32   // nodeByte, nodeRepeat: what follows; nodeCall: where the called rule returns to
	arg      int32   // nodeCall, nodeRepeat: where the rule or the body begins
	min, max int32   // nodeRepeat; max < 0: no end
	alts     []int32 // nodeAlt
}

type nodeOp uint8

const (
	nodeEnd    nodeOp = iota // of a rule or of a repeated body; node 0 is the only one
	nodeByte                 // takes a byte
	nodeAlt                  // goes on at any of alts
	nodeCall                 // runs a rule, then goes on
	nodeRepeat               // runs a body so many times, then goes on
)

// program is a compiled grammar.
type program struct {
	nodes []node
	sets  []byteSet
	start int32
	live  []bool // a finite string leads from the node to its end
}

type consKey struct {
	op       nodeOp
	set      int32
	next     int32
	arg      int32
	min, max int32
}

type placeKey struct {
	e    *expr
	next int32
}

type compiler struct {
	ctx      context.Context
	nodes    []node
	setIDs   map[byteSet]int32
	sets     []byteSet
	cons     map[consKey]int32
	places   map[placeKey]int32
	starts   map[*rule]int32
	pending  []*rule
	nullable *nullability
	nonEmpty map[*expr]*expr
	bodies   map[*rule]*rule // rules without their empty string
	err      error
}

// compile makes the program of a grammar that starts with e.
func compile(ctx context.Context, e *expr) (*program, error) {
	c := &compiler{ctx: ctx, setIDs: map[byteSet]int32{}, cons: map[consKey]int32{}, places: map[placeKey]int32{},
		starts: map[*rule]int32{}, nonEmpty: map[*expr]*expr{}, bodies: map[*rule]*rule{}}
	var err error
	if c.nullable, err = findNullable(e); err != nil {
		return nil, err
	}
	if err := checkLeftRecursion(e, c.nullable); err != nil {
		return nil, err
	}
	c.nodes = append(c.nodes, node{op: nodeEnd})
	start := c.place(e, 0)
	for len(c.pending) > 0 && c.err == nil {
		r := c.pending[len(c.pending)-1]
		c.pending = c.pending[:len(c.pending)-1]
		body := c.place(r.body, 0)
		at := &c.nodes[c.starts[r]]
		at.op, at.alts = nodeAlt, []int32{body}
	}
	if c.err != nil {
		return nil, c.err
	}
	p := &program{nodes: c.nodes, sets: c.sets, start: start}
	if err := p.findLive(ctx); err != nil {
		return nil, err
	}
	if !p.live[start] {
		return nil, failure(ErrInvalid, "no finite text satisfies it")
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
	if len(c.nodes) >= limits.GrammarPlaces {
		return c.fail(failure(ErrLimit, "it compiles to more than %d places", limits.GrammarPlaces))
	}
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1)
}

// shared adds a node, or finds the one that is the same.
func (c *compiler) shared(n node) int32 {
	k := consKey{n.op, n.set, n.next, n.arg, n.min, n.max}
	if at, ok := c.cons[k]; ok {
		return at
	}
	at := c.add(n)
	c.cons[k] = at
	return at
}

func (c *compiler) setID(s byteSet) int32 {
	id, ok := c.setIDs[s]
	if !ok {
		id = int32(len(c.sets))
		c.sets = append(c.sets, s)
		c.setIDs[s] = id
	}
	return id
}

// place is where e begins when next follows it.
func (c *compiler) place(e *expr, next int32) int32 {
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err != nil {
		return 0
	}
	k := placeKey{e, next}
	if at, ok := c.places[k]; ok {
		return at
	}
	at := c.build(e, next)
	c.places[k] = at
	return at
}

func (c *compiler) build(e *expr, next int32) int32 {
	switch e.op {
	case exprSeq:
		for _, s := range slices.Backward(e.subs) {
			next = c.place(s, next)
		}
		return next
	case exprSet:
		return c.shared(node{op: nodeByte, set: c.setID(e.set), next: next})
	case exprText:
		for i := len(e.text) - 1; i >= 0 && c.err == nil; i-- {
			next = c.shared(node{op: nodeByte, set: c.setID(byteRange(e.text[i], e.text[i])), next: next})
		}
		return next
	case exprAlt:
		alts := make([]int32, 0, len(e.subs))
		for _, s := range e.subs {
			if at := c.place(s, next); !slices.Contains(alts, at) {
				alts = append(alts, at)
			}
		}
		if len(alts) == 1 {
			return alts[0]
		}
		return c.add(node{op: nodeAlt, alts: alts})
	case exprCall:
		at, ok := c.starts[e.rule]
		if !ok {
			at = c.add(node{})
			c.starts[e.rule] = at
			c.pending = append(c.pending, e.rule)
		}
		return c.shared(node{op: nodeCall, arg: at, next: next})
	}
	return c.repeat(e, next)
}

// inlineRepeat is up to how many places a counted repetition is written out.
const inlineRepeat = 32

func (c *compiler) repeat(e *expr, next int32) int32 {
	body, least, most := e.subs[0], e.min, e.max
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		return c.fail(failure(ErrLimit, "a repetition of more than %d", limits.GrammarRepeat))
	}
	// A body that can be empty would repeat without end and without reading anything.
	if c.nullable.of(body) {
		least, body = 0, c.withoutEmpty(body)
	}
	switch {
	case body.none() && least == 0:
		return next
	case body.none():
		return c.add(node{op: nodeAlt})
	case most < 0 && least <= 1: // a loop
		loop := c.add(node{op: nodeAlt})
		begin := c.place(body, loop)
		if c.err != nil {
			return 0
		}
		c.nodes[loop].alts = []int32{begin, next}
		if least == 1 {
			return begin
		}
		return loop
	case most >= 0 && (body.op == exprSet || body.op == exprText) && most*max(1, len(body.text)) <= inlineRepeat:
		at := next
		for i := most; i > 0; i-- {
			begin := c.place(body, at)
			if i > least {
				at = c.add(node{op: nodeAlt, alts: []int32{begin, next}})
			} else {
				at = begin
			}
		}
		return at
	}
	begin := c.place(body, 0)
	return c.shared(node{op: nodeRepeat, arg: begin, next: next, min: int32(least), max: int32(most)})
}

// withoutEmpty is e but for the empty string.
func (c *compiler) withoutEmpty(e *expr) *expr {
	if !c.nullable.of(e) {
		return e
	}
	if made, ok := c.nonEmpty[e]; ok {
		return made
	}
	var made *expr
	switch e.op {
	case exprSeq: // the first part that is not empty, then the rest
		if len(e.subs) > limits.GrammarAlternatives {
			c.fail(failure(ErrLimit, "a repetition of %d parts that may all be empty; at most %d", len(e.subs), limits.GrammarAlternatives))
			return noExpr
		}
		var parts []*expr
		for i, s := range e.subs {
			parts = append(parts, seqExpr(append([]*expr{c.withoutEmpty(s)}, e.subs[i+1:]...)...))
		}
		made = altExpr(parts...)
	case exprAlt:
		var parts []*expr
		for _, s := range e.subs {
			parts = append(parts, c.withoutEmpty(s))
		}
		made = altExpr(parts...)
	case exprRepeat:
		most := e.max
		if most > 0 {
			most--
		}
		made = seqExpr(c.withoutEmpty(e.subs[0]), repeatExpr(e.subs[0], 0, most))
	case exprCall:
		r, ok := c.bodies[e.rule]
		if !ok {
			r = &rule{name: e.rule.name}
			c.bodies[e.rule] = r
			c.nullable.rules[r] = false
			r.body = c.withoutEmpty(e.rule.body)
		}
		made = callExpr(r)
	default:
		made = noExpr // the empty text
	}
	c.nonEmpty[e] = made
	return made
}

// findLive marks the nodes from which a finite string leads to the end.
func (p *program) findLive(ctx context.Context) error {
	p.live = make([]bool, len(p.nodes))
	for changed, round := true, 0; changed; round++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		changed = false
		for k := range p.nodes {
			i := sweep(k, len(p.nodes), round)
			if p.live[i] {
				continue
			}
			n := &p.nodes[i]
			live := false
			switch n.op {
			case nodeEnd:
				live = true
			case nodeByte:
				live = p.live[n.next]
			case nodeAlt:
				live = slices.ContainsFunc(n.alts, func(a int32) bool { return p.live[a] })
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

// sweep is the k-th of n in the order of a round: forth and back, so that chains in either direction take few rounds.
func sweep(k, n, round int) int {
	if round%2 == 0 {
		return k
	}
	return n - 1 - k
}
