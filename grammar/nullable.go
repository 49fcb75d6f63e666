package grammar

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/limits"
)

// nullability records which exprs contain the empty string.
type nullability struct {
	rules map[*expr.Rule]bool
	memo  map[*expr.Expr]bool
}

// findNullable analyzes all exprs that are reachable from e. It also checks the limits on alternatives and rules.
func findNullable(e *expr.Expr) (*nullability, error) {
	n := &nullability{rules: map[*expr.Rule]bool{}, memo: map[*expr.Expr]bool{}}
	var rules []*expr.Rule
	seen := map[*expr.Expr]bool{}
	var err error
	var visit func(e *expr.Expr)
	visit = func(e *expr.Expr) {
		if len(e.Subs) == 0 && e.Op != expr.OpCall || seen[e] || err != nil {
			return
		}
		seen[e] = true
		if e.Op == expr.OpAlt && len(e.Subs) > limits.GrammarAlternatives {
			err = expr.Errorf(ErrLimit, "%d alternatives in one group; at most %d", len(e.Subs), limits.GrammarAlternatives)
		}
		if e.Op == expr.OpCall {
			if _, ok := n.rules[e.Rule]; !ok {
				n.rules[e.Rule] = false
				if rules = append(rules, e.Rule); len(rules) > limits.GrammarRules {
					err = expr.Errorf(ErrLimit, "more than %d rules or definitions", limits.GrammarRules)
				}
				visit(e.Rule.Body)
			}
		}
		for _, s := range e.Subs {
			visit(s)
		}
	}
	visit(e)
	if err != nil {
		return nil, err
	}
	for changed, round := true, 0; changed; round++ {
		changed = false
		clear(n.memo)
		for k := range rules {
			r := rules[sweep(k, len(rules), round)]
			if !n.rules[r] && n.of(r.Body) {
				n.rules[r], changed = true, true
			}
		}
	}
	clear(n.memo)
	return n, nil
}

// of reports whether e contains the empty string.
func (n *nullability) of(e *expr.Expr) bool {
	switch e.Op {
	case expr.OpSet, expr.OpToken, expr.OpLexeme:
		return false
	case expr.OpText:
		return e.Text == ""
	case expr.OpCall:
		return n.rules[e.Rule]
	case expr.OpSkip:
		return true
	case expr.OpGraph:
		return e.Graph.States[0].Accept
	}
	if v, ok := n.memo[e]; ok {
		return v
	}
	v := false
	switch e.Op {
	case expr.OpSeq:
		v = true
		for _, s := range e.Subs {
			v = v && n.of(s)
		}
	case expr.OpAlt:
		for _, s := range e.Subs {
			v = v || n.of(s)
		}
	case expr.OpRepeat:
		v = e.Min == 0 || n.of(e.Subs[0])
	}
	n.memo[e] = v
	return v
}

// withoutEmpty returns e without the empty string.
func (c *compiler) withoutEmpty(e *expr.Expr) *expr.Expr {
	if !c.nullable.of(e) {
		return e
	}
	if made, ok := c.nonEmpty[e]; ok {
		return made
	}
	var made *expr.Expr
	switch e.Op {
	case expr.OpSeq: // for each part: that part without the empty string, then the rest
		if len(e.Subs) > limits.GrammarAlternatives {
			const format = "a repetition of %d parts that may all be empty; at most %d"
			c.fail(expr.Errorf(ErrLimit, format, len(e.Subs), limits.GrammarAlternatives))
			return expr.None
		}
		var parts []*expr.Expr
		for i, s := range e.Subs {
			parts = append(parts, expr.Seq(append([]*expr.Expr{c.withoutEmpty(s)}, e.Subs[i+1:]...)...))
		}
		made = expr.Alt(parts...)
	case expr.OpAlt:
		var parts []*expr.Expr
		for _, s := range e.Subs {
			parts = append(parts, c.withoutEmpty(s))
		}
		made = expr.Alt(parts...)
	case expr.OpRepeat:
		most := e.Max
		if most > 0 {
			most--
		}
		made = expr.Seq(c.withoutEmpty(e.Subs[0]), expr.Repeat(e.Subs[0], 0, most))
	case expr.OpCall:
		r, ok := c.bodies[e.Rule]
		if !ok {
			r = &expr.Rule{Name: e.Rule.Name}
			c.bodies[e.Rule] = r
			c.nullable.rules[r] = false
			r.Body = c.withoutEmpty(e.Rule.Body)
		}
		made = expr.Call(r)
	case expr.OpGraph:
		made = graphWithoutEmpty(e.Graph)
	default:
		made = expr.None // the empty text
	}
	c.nonEmpty[e] = made
	return made
}

// graphWithoutEmpty returns the texts of g but the empty one: a new start does not accept.
func graphWithoutEmpty(g *expr.Graph) *expr.Expr {
	begin := g.States[0]
	begin.Accept = false
	if len(begin.Edges)+len(begin.Calls) == 0 {
		return expr.None
	}
	states := append([]expr.GraphState{begin}, g.States...)
	for i := range states {
		edges, calls := slices.Clone(states[i].Edges), slices.Clone(states[i].Calls)
		for k := range edges {
			edges[k].To++
		}
		for k := range calls {
			calls[k].To++
		}
		states[i].Edges, states[i].Calls = edges, calls
	}
	return expr.Run(&expr.Graph{States: states})
}
