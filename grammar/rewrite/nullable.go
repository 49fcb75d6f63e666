// Package rewrite changes expressions to equal ones that an automaton can run: without left recursion, and repetitions
// of which each pass takes a byte.
//
// Contract: the texts stay the same. Expressions are never changed in place, but for the bodies of left-recursive
// rules. What is left-recursive behind a part that may be empty is expr.ErrUnsupported. A grammar beyond the limits on
// alternatives and rules is expr.ErrLimit.
package rewrite

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/limits"
)

// Nullability records which exprs contain the empty string.
type Nullability struct {
	rules    map[*expr.Rule]bool
	memo     map[*expr.Expr]bool
	nonEmpty map[*expr.Expr]*expr.Expr
	bodies   map[*expr.Rule]*expr.Rule // rules without the empty string
	err      error
}

// FindNullable analyzes all exprs that are reachable from e. It also checks the limits on alternatives and rules.
func FindNullable(e *expr.Expr) (*Nullability, error) {
	n := &Nullability{rules: map[*expr.Rule]bool{}, memo: map[*expr.Expr]bool{},
		nonEmpty: map[*expr.Expr]*expr.Expr{}, bodies: map[*expr.Rule]*expr.Rule{}}
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
			err = expr.Errorf(expr.ErrLimit, "%d alternatives in one group; at most %d", len(e.Subs), limits.GrammarAlternatives)
		}
		if e.Op == expr.OpCall {
			if _, ok := n.rules[e.Rule]; !ok {
				n.rules[e.Rule] = false
				if rules = append(rules, e.Rule); len(rules) > limits.GrammarRules {
					err = expr.Errorf(expr.ErrLimit, "more than %d rules or definitions", limits.GrammarRules)
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
	for changed := true; changed; {
		changed = false
		clear(n.memo)
		slices.Reverse(rules) // chains in either direction converge in few rounds
		for _, r := range rules {
			if !n.rules[r] && n.Of(r.Body) {
				n.rules[r], changed = true, true
			}
		}
	}
	clear(n.memo)
	return n, nil
}

// Of reports whether e contains the empty string.
func (n *Nullability) Of(e *expr.Expr) bool {
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
			v = v && n.Of(s)
		}
	case expr.OpAlt:
		for _, s := range e.Subs {
			v = v || n.Of(s)
		}
	case expr.OpRepeat:
		v = e.Min == 0 || n.Of(e.Subs[0])
	}
	n.memo[e] = v
	return v
}

// WithoutEmpty returns e without the empty string.
func (n *Nullability) WithoutEmpty(e *expr.Expr) (*expr.Expr, error) {
	made := n.withoutEmpty(e)
	return made, n.err
}

func (n *Nullability) withoutEmpty(e *expr.Expr) *expr.Expr {
	if !n.Of(e) {
		return e
	}
	if made, ok := n.nonEmpty[e]; ok {
		return made
	}
	var made *expr.Expr
	switch e.Op {
	case expr.OpSeq: // for each part: that part without the empty string, then the rest
		if len(e.Subs) > limits.GrammarAlternatives {
			const format = "a repetition of %d parts that may all be empty; at most %d"
			n.err = expr.Errorf(expr.ErrLimit, format, len(e.Subs), limits.GrammarAlternatives)
			return expr.None
		}
		var parts []*expr.Expr
		for i, s := range e.Subs {
			parts = append(parts, expr.Seq(append([]*expr.Expr{n.withoutEmpty(s)}, e.Subs[i+1:]...)...))
		}
		made = expr.Alt(parts...)
	case expr.OpAlt:
		var parts []*expr.Expr
		for _, s := range e.Subs {
			parts = append(parts, n.withoutEmpty(s))
		}
		made = expr.Alt(parts...)
	case expr.OpRepeat:
		most := e.Max
		if most > 0 {
			most--
		}
		made = expr.Seq(n.withoutEmpty(e.Subs[0]), expr.Repeat(e.Subs[0], 0, most))
	case expr.OpCall:
		r, ok := n.bodies[e.Rule]
		if !ok {
			r = &expr.Rule{Name: e.Rule.Name}
			n.bodies[e.Rule] = r
			n.rules[r] = false
			r.Body = n.withoutEmpty(e.Rule.Body)
		}
		made = expr.Call(r)
	case expr.OpGraph:
		made = graphWithoutEmpty(e.Graph)
	default:
		made = expr.None // the empty text
	}
	n.nonEmpty[e] = made
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
