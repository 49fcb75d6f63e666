package recursion

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// Nullability records which exprs contain the empty string.
type Nullability struct {
	rules map[*expr.Rule]bool
	memo  map[*expr.Expr]bool

	nonEmpty map[*expr.Expr]*expr.Expr // see WithoutEmpty
	bodies   map[*expr.Rule]*expr.Rule // rules without the empty string
	err      error
}

// Find analyzes all exprs that are reachable from e. It also checks the limits on alternatives and rules.
func Find(e *expr.Expr) (*Nullability, error) {
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
	for changed := true; changed; slices.Reverse(rules) { // chains in either direction converge in few rounds
		changed = false
		clear(n.memo)
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
