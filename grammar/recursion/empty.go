package recursion

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

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
