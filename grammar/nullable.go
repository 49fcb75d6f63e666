package grammar

import (
	"strings"

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
		if seen[e] || err != nil {
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
	case expr.OpCall:
		v = n.rules[e.Rule]
	case expr.OpText:
		v = e.Text == ""
	case expr.OpGraph:
		v = e.Graph.States[0].Accept
	}
	n.memo[e] = v
	return v
}

// checkLeftRecursion refuses rules that can call themselves before they consume a byte: their stack would grow without
// bound.
func checkLeftRecursion(e *expr.Expr, n *nullability) error {
	const (
		open = 1
		done = 2
	)
	state := map[*expr.Rule]int{}
	var path []string
	var err error
	var visitRule func(r *expr.Rule)
	var visit func(e *expr.Expr, seen map[*expr.Expr]bool)
	visit = func(e *expr.Expr, seen map[*expr.Expr]bool) {
		if seen[e] || err != nil {
			return
		}
		seen[e] = true
		switch e.Op {
		case expr.OpSeq:
			for _, s := range e.Subs {
				visit(s, seen)
				if !n.of(s) {
					return
				}
			}
		case expr.OpAlt, expr.OpRepeat:
			for _, s := range e.Subs {
				visit(s, seen)
			}
		case expr.OpCall:
			visitRule(e.Rule)
		}
	}
	visitRule = func(r *expr.Rule) {
		switch {
		case err != nil || state[r] == done:
		case state[r] == open:
			cycle := expr.Clip(strings.Join(append(path, r.Name), " -> "))
			err = expr.Errorf(ErrUnsupported, "rule %s is left-recursive (%s); rewrite it as a repetition", r.Name, cycle)
		default:
			state[r] = open
			path = append(path, r.Name)
			visit(r.Body, map[*expr.Expr]bool{})
			path = path[:len(path)-1]
			state[r] = done
		}
	}
	visit(e, map[*expr.Expr]bool{})
	return err
}
