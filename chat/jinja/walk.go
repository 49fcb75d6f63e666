package jinja

import (
	"context"

	"github.com/ingotml/ingot/limits"
)

// children returns the children of a node in the reference's visiting order.
func children(n any) []any {
	switch n := n.(type) {
	case *astTuple:
		return exprs(n.items)
	case *astList:
		return exprs(n.items)
	case *astDict:
		var c []any
		for i := range n.keys {
			c = append(c, n.keys[i], n.values[i])
		}
		return c
	case *astCond:
		c := []any{n.test, n.yes}
		if n.no != nil {
			c = append(c, n.no)
		}
		return c
	case *astAnd:
		return []any{n.l, n.r}
	case *astOr:
		return []any{n.l, n.r}
	case *astNot:
		return []any{n.x}
	case *astUnary:
		return []any{n.x}
	case *astBinary:
		return []any{n.l, n.r}
	case *astConcat:
		return exprs(n.items)
	case *astCompare:
		return append([]any{n.first}, exprs(n.rest)...)
	case *astAttr:
		return []any{n.x}
	case *astItem:
		return []any{n.x, n.arg}
	case *astSlice:
		var c []any
		for _, x := range []astExpr{n.start, n.stop, n.step} {
			if x != nil {
				c = append(c, x)
			}
		}
		return c
	case *astCall:
		return append([]any{n.fn}, n.args.children()...)
	case *astFilter:
		if n.x == nil {
			return n.args.children()
		}
		return append([]any{n.x}, n.args.children()...)
	case *astTest:
		return append([]any{n.x}, n.args.children()...)
	case *astOutput:
		return exprs(n.items)
	case *astIf:
		var c []any
		for i := range n.tests {
			c = append(append(c, n.tests[i]), stmts(n.bodies[i])...)
		}
		return append(c, stmts(n.other)...)
	case *astFor:
		c := []any{n.target, n.iter}
		c = append(append(c, stmts(n.body)...), stmts(n.other)...)
		if n.test != nil {
			c = append(c, n.test)
		}
		return c
	case *astSet:
		return []any{n.target, n.value}
	case *astSetBlock:
		c := []any{n.target}
		if n.filter != nil {
			c = append(c, n.filter)
		}
		return append(c, stmts(n.body)...)
	case *astMacro:
		return n.children()
	case *astCallBlock:
		return append([]any{n.call}, n.macro.children()...)
	case *astGeneration:
		return n.macro.children()
	case *astFilterBlock:
		return append(stmts(n.body), n.filter)
	case *astWith:
		return append(append(exprs(n.targets), exprs(n.values)...), stmts(n.body)...)
	}
	return nil
}

func exprs(list []astExpr) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

func stmts(list []astStmt) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

func (a *astArgs) children() []any {
	c := append(exprs(a.pos), exprs(a.named)...)
	if a.dynPos != nil {
		c = append(c, a.dynPos)
	}
	if a.dynNamed != nil {
		c = append(c, a.dynNamed)
	}
	return c
}

func (m *astMacro) children() []any {
	var c []any
	for _, a := range m.args {
		c = append(c, a)
	}
	return append(append(c, exprs(m.defaults)...), stmts(m.body)...)
}

// measure returns the depth of a template's tree, which bounds the recursion of evaluation. It fails if the depth
// exceeds limits.TemplateDepth. It uses an explicit stack, because a chain of operators is as deep as it is long.
func measure(ctx context.Context, body []astStmt) (int, error) {
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
			return 0, limitError("expressions nested or chained more than %d levels deep", limits.TemplateDepth)
		}
		if visited++; visited%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
		}
		for _, c := range children(p.n) {
			todo = append(todo, place{c, p.level + 1})
		}
	}
	return deepest, nil
}
