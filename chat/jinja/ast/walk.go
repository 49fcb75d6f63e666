package ast

import (
	"context"

	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

// Children returns the children of a node in the reference's visiting order.
func Children(n any) []any {
	switch n := n.(type) {
	case *Tuple:
		return Exprs(n.Items)
	case *List:
		return Exprs(n.Items)
	case *Dict:
		var c []any
		for i := range n.Keys {
			c = append(c, n.Keys[i], n.Values[i])
		}
		return c
	case *Cond:
		c := []any{n.Test, n.Yes}
		if n.No != nil {
			c = append(c, n.No)
		}
		return c
	case *And:
		return []any{n.L, n.R}
	case *Or:
		return []any{n.L, n.R}
	case *Not:
		return []any{n.X}
	case *Unary:
		return []any{n.X}
	case *Binary:
		return []any{n.L, n.R}
	case *Concat:
		return Exprs(n.Items)
	case *Compare:
		return append([]any{n.First}, Exprs(n.Rest)...)
	case *Attr:
		return []any{n.X}
	case *Item:
		return []any{n.X, n.Arg}
	case *Slice:
		var c []any
		for _, x := range []Expr{n.Start, n.Stop, n.Step} {
			if x != nil {
				c = append(c, x)
			}
		}
		return c
	case *Call:
		return append([]any{n.Fn}, n.Args.children()...)
	case *Filter:
		if n.X == nil {
			return n.Args.children()
		}
		return append([]any{n.X}, n.Args.children()...)
	case *Test:
		return append([]any{n.X}, n.Args.children()...)
	case *Output:
		return Exprs(n.Items)
	case *If:
		var c []any
		for i := range n.Tests {
			c = append(append(c, n.Tests[i]), Stmts(n.Bodies[i])...)
		}
		return append(c, Stmts(n.Other)...)
	case *For:
		c := []any{n.Target, n.Iter}
		c = append(append(c, Stmts(n.Body)...), Stmts(n.Other)...)
		if n.Test != nil {
			c = append(c, n.Test)
		}
		return c
	case *Set:
		return []any{n.Target, n.Value}
	case *SetBlock:
		c := []any{n.Target}
		if n.Filter != nil {
			c = append(c, n.Filter)
		}
		return append(c, Stmts(n.Body)...)
	case *Macro:
		return n.Children()
	case *CallBlock:
		return append([]any{n.Call}, n.Macro.Children()...)
	case *Generation:
		return n.Macro.Children()
	case *FilterBlock:
		return append(Stmts(n.Body), n.Filter)
	case *With:
		return append(append(Exprs(n.Targets), Exprs(n.Values)...), Stmts(n.Body)...)
	}
	return nil
}

// Exprs returns expressions as nodes.
func Exprs(list []Expr) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

// Stmts returns statements as nodes.
func Stmts(list []Stmt) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

func (a *Args) children() []any {
	c := append(Exprs(a.Pos), Exprs(a.Named)...)
	if a.DynPos != nil {
		c = append(c, a.DynPos)
	}
	if a.DynNamed != nil {
		c = append(c, a.DynNamed)
	}
	return c
}

// Children returns the parameters, defaults and body of a macro.
func (m *Macro) Children() []any {
	var c []any
	for _, a := range m.Args {
		c = append(c, a)
	}
	return append(append(c, Exprs(m.Defaults)...), Stmts(m.Body)...)
}

// Measure returns the depth of a template's tree, which bounds the recursion of evaluation. It fails if the depth
// exceeds limits.TemplateDepth. It uses an explicit stack, because a chain of operators is as deep as it is long.
func Measure(ctx context.Context, body []Stmt) (int, error) {
	type place struct {
		n     any
		level int
	}
	deepest, visited := 1, 0
	todo := make([]place, 0, len(body))
	for _, s := range body {
		todo = append(todo, place{s, 1})
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if deepest = max(deepest, p.level); deepest > limits.TemplateDepth {
			return 0, value.LimitError("expressions nested or chained more than %d levels deep", limits.TemplateDepth)
		}
		if visited++; visited%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		for _, c := range Children(p.n) {
			todo = append(todo, place{c, p.level + 1})
		}
	}
	return deepest, nil
}
