// Package recursion removes left recursion from expressions, and finds which of them contain the empty string.
//
// Contract: it changes the bodies of rules, before anything is compiled from them. It checks the limits on alternatives
// and rules. A recursion that it cannot remove is ErrUnsupported, with the rules on the way.
package recursion

import (
	"slices"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// RemoveLeft rewrites rules that can call themselves before they consume a byte: their stack would grow
// without bound. It refuses those that do so behind a part that may be empty.
func RemoveLeft(e *expr.Expr, n *Nullability) error {
	ways := map[*expr.Rule]string{} // before a rule was rewritten
	for tries := 0; ; tries++ {
		cycle, way := findLeftRecursion(e, n)
		if cycle == nil {
			return nil
		}
		r := cycle[0]
		again := ways[r] != ""
		if !again {
			ways[r] = way
		}
		x := expander{nullable: n, rules: cycle}
		if alts := x.alternatives(r.Body); tries < maxRewrites && !x.failed && !(again && len(cycle) == 1) {
			r.Body = expr.LeftRecursive(r, alts)
			continue
		}
		const why = "rule %s is left-recursive (%s); rewrite it as a repetition"
		return expr.Errorf(expr.ErrUnsupported, why, r.Name, expr.Clip(ways[r]))
	}
}

// maxRewrites bounds the rules that are rewritten.
const maxRewrites = 200

// expander replaces calls at the beginning of a rule by the rules that they call.
type expander struct {
	nullable *Nullability
	rules    []*expr.Rule // a cycle of calls, from the rule that is rewritten
	open     []*expr.Rule
	made     int
	failed   bool
}

// alternatives returns alternatives that together match e. They begin with none of the cycle's rules but the first.
func (x *expander) alternatives(e *expr.Expr) (out []*expr.Expr) {
	if x.made++; x.made > limits.GrammarAlternatives {
		x.failed = true
	}
	if x.failed {
		return nil
	}
	switch e.Op {
	case expr.OpAlt:
		for _, s := range e.Subs {
			out = append(out, x.alternatives(s)...)
		}
		return out
	case expr.OpSeq:
		if len(e.Subs) == 0 || x.nullable.Of(e.Subs[0]) {
			return []*expr.Expr{e}
		}
		rest := e.Subs[1:]
		for _, head := range x.alternatives(e.Subs[0]) {
			parts := []*expr.Expr{head}
			if head.Op == expr.OpSeq { // its own beginning counts
				parts = slices.Clone(head.Subs)
			}
			out = append(out, expr.Seq(append(parts, rest...)...))
		}
		return out
	case expr.OpRepeat:
		if e.Min > 0 && !x.nullable.Of(e.Subs[0]) { // x+ is x x*
			least, most := e.Min-1, max(e.Max-1, -1)
			return x.alternatives(&expr.Expr{Op: expr.OpSeq,
				Subs: []*expr.Expr{e.Subs[0], expr.Repeat(e.Subs[0], least, most)}})
		}
	case expr.OpCall:
		if e.Rule == x.rules[0] || !slices.Contains(x.rules, e.Rule) {
			break
		}
		if slices.Contains(x.open, e.Rule) { // a cycle of its own
			x.failed = true
			return nil
		}
		x.open = append(x.open, e.Rule)
		out = x.alternatives(e.Rule.Body)
		x.open = x.open[:len(x.open)-1]
		return out
	}
	return []*expr.Expr{e}
}

// findLeftRecursion returns the rules of a cycle of calls at the beginning of rules, and the way to it; nil if there is
// none.
func findLeftRecursion(e *expr.Expr, n *Nullability) (cycle []*expr.Rule, way string) {
	const (
		open = 1
		done = 2
	)
	state := map[*expr.Rule]int{}
	var path []*expr.Rule
	var visitRule func(r *expr.Rule)
	var visit func(e *expr.Expr, seen map[*expr.Expr]bool)
	visit = func(e *expr.Expr, seen map[*expr.Expr]bool) {
		if e.Op == expr.OpCall {
			visitRule(e.Rule)
			return
		}
		if len(e.Subs) == 0 || seen[e] || cycle != nil {
			return
		}
		seen[e] = true
		switch e.Op {
		case expr.OpSeq:
			for _, s := range e.Subs {
				visit(s, seen)
				if !n.Of(s) {
					return
				}
			}
		case expr.OpAlt, expr.OpRepeat, expr.OpSkip:
			for _, s := range e.Subs {
				visit(s, seen)
			}
		}
	}
	visitRule = func(r *expr.Rule) {
		switch {
		case cycle != nil || state[r] == done:
		case state[r] == open:
			cycle = slices.Clone(path[slices.Index(path, r):])
			var names []string
			for _, p := range append(path, r) {
				names = append(names, p.Name)
			}
			way = strings.Join(names, " -> ")
		default:
			state[r] = open
			path = append(path, r)
			visit(r.Body, map[*expr.Expr]bool{})
			path = path[:len(path)-1]
			state[r] = done
		}
	}
	visit(e, map[*expr.Expr]bool{})
	return cycle, way
}
