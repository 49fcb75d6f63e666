package grammar

import (
	"strings"

	"github.com/ingotml/ingot/limits"
)

// nullability records which exprs contain the empty string.
type nullability struct {
	rules map[*rule]bool
	memo  map[*expr]bool
}

// findNullable analyzes all exprs that are reachable from e. It also checks the limits on alternatives and rules.
func findNullable(e *expr) (*nullability, error) {
	n := &nullability{rules: map[*rule]bool{}, memo: map[*expr]bool{}}
	var rules []*rule
	seen := map[*expr]bool{}
	var err error
	var visit func(e *expr)
	visit = func(e *expr) {
		if seen[e] || err != nil {
			return
		}
		seen[e] = true
		if e.op == exprAlt && len(e.subs) > limits.GrammarAlternatives {
			err = failure(ErrLimit, "%d alternatives in one group; at most %d", len(e.subs), limits.GrammarAlternatives)
		}
		if e.op == exprCall {
			if _, ok := n.rules[e.rule]; !ok {
				n.rules[e.rule] = false
				if rules = append(rules, e.rule); len(rules) > limits.GrammarRules {
					err = failure(ErrLimit, "more than %d rules or definitions", limits.GrammarRules)
				}
				visit(e.rule.body)
			}
		}
		for _, s := range e.subs {
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
			if !n.rules[r] && n.of(r.body) {
				n.rules[r], changed = true, true
			}
		}
	}
	clear(n.memo)
	return n, nil
}

// of reports whether e contains the empty string.
func (n *nullability) of(e *expr) bool {
	if v, ok := n.memo[e]; ok {
		return v
	}
	v := false
	switch e.op {
	case exprSeq:
		v = true
		for _, s := range e.subs {
			v = v && n.of(s)
		}
	case exprAlt:
		for _, s := range e.subs {
			v = v || n.of(s)
		}
	case exprRepeat:
		v = e.min == 0 || n.of(e.subs[0])
	case exprCall:
		v = n.rules[e.rule]
	case exprText:
		v = e.text == ""
	}
	n.memo[e] = v
	return v
}

// checkLeftRecursion refuses rules that can call themselves before they consume a byte: their stack would grow without
// bound.
func checkLeftRecursion(e *expr, n *nullability) error {
	const (
		open = 1
		done = 2
	)
	state := map[*rule]int{}
	var path []string
	var err error
	var visitRule func(r *rule)
	var visit func(e *expr, seen map[*expr]bool)
	visit = func(e *expr, seen map[*expr]bool) {
		if seen[e] || err != nil {
			return
		}
		seen[e] = true
		switch e.op {
		case exprSeq:
			for _, s := range e.subs {
				visit(s, seen)
				if !n.of(s) {
					return
				}
			}
		case exprAlt, exprRepeat:
			for _, s := range e.subs {
				visit(s, seen)
			}
		case exprCall:
			visitRule(e.rule)
		}
	}
	visitRule = func(r *rule) {
		switch {
		case err != nil || state[r] == done:
		case state[r] == open:
			cycle := clip(strings.Join(append(path, r.name), " -> "))
			err = failure(ErrUnsupported, "rule %s is left-recursive (%s); rewrite it as a repetition", r.name, cycle)
		default:
			state[r] = open
			path = append(path, r.name)
			visit(r.body, map[*expr]bool{})
			path = path[:len(path)-1]
			state[r] = done
		}
	}
	visit(e, map[*expr]bool{})
	return err
}
