package jinja

import (
	"context"

	"github.com/ingotml/ingot/limits"
)

// children returns the children of a node in the reference's visiting order.
func children(n any) []any {
	switch n := n.(type) {
	case *tupleExpr:
		return exprs(n.items)
	case *listExpr:
		return exprs(n.items)
	case *dictExpr:
		var c []any
		for i := range n.keys {
			c = append(c, n.keys[i], n.values[i])
		}
		return c
	case *condExpr:
		c := []any{n.test, n.yes}
		if n.no != nil {
			c = append(c, n.no)
		}
		return c
	case *andExpr:
		return []any{n.l, n.r}
	case *orExpr:
		return []any{n.l, n.r}
	case *notExpr:
		return []any{n.x}
	case *unaryExpr:
		return []any{n.x}
	case *binExpr:
		return []any{n.l, n.r}
	case *concatExpr:
		return exprs(n.items)
	case *compareExpr:
		return append([]any{n.first}, exprs(n.rest)...)
	case *attrExpr:
		return []any{n.x}
	case *itemExpr:
		return []any{n.x, n.arg}
	case *sliceExpr:
		var c []any
		for _, x := range []expr{n.start, n.stop, n.step} {
			if x != nil {
				c = append(c, x)
			}
		}
		return c
	case *callExpr:
		return append([]any{n.fn}, n.args.children()...)
	case *filterExpr:
		if n.x == nil {
			return n.args.children()
		}
		return append([]any{n.x}, n.args.children()...)
	case *testExpr:
		return append([]any{n.x}, n.args.children()...)
	case *outputStmt:
		return exprs(n.items)
	case *ifStmt:
		var c []any
		for i := range n.tests {
			c = append(append(c, n.tests[i]), stmts(n.bodies[i])...)
		}
		return append(c, stmts(n.other)...)
	case *forStmt:
		c := []any{n.target, n.iter}
		c = append(append(c, stmts(n.body)...), stmts(n.other)...)
		if n.test != nil {
			c = append(c, n.test)
		}
		return c
	case *setStmt:
		return []any{n.target, n.value}
	case *setBlock:
		c := []any{n.target}
		if n.filter != nil {
			c = append(c, n.filter)
		}
		return append(c, stmts(n.body)...)
	case *macroStmt:
		return n.children()
	case *callStmt:
		return append([]any{n.call}, n.macro.children()...)
	case *generationStmt:
		return children(n.call)
	case *filterStmt:
		return append(stmts(n.body), n.filter)
	case *withStmt:
		return append(append(exprs(n.targets), exprs(n.values)...), stmts(n.body)...)
	}
	return nil
}

func exprs(list []expr) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

func stmts(list []stmt) []any {
	c := make([]any, len(list))
	for i, x := range list {
		c[i] = x
	}
	return c
}

func (a *callArgs) children() []any {
	c := append(exprs(a.pos), exprs(a.named)...)
	if a.dynPos != nil {
		c = append(c, a.dynPos)
	}
	if a.dynNamed != nil {
		c = append(c, a.dynNamed)
	}
	return c
}

func (m *macroStmt) children() []any {
	var c []any
	for _, a := range m.args {
		c = append(c, a)
	}
	return append(append(c, exprs(m.defaults)...), stmts(m.body)...)
}

// undeclared returns which of the names the nodes read before assigning them.
func (b *budget) undeclared(nodes []any, names ...string) map[string]bool {
	open, found := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		open[n] = true
	}
	var visit func(n any)
	visit = func(n any) {
		if !b.take(1) {
			return
		}
		if n, ok := n.(*nameExpr); ok {
			if n.use == useLoad && open[n.name] {
				found[n.name] = true
			} else {
				delete(open, n.name)
			}
			return
		}
		for _, c := range children(n) {
			visit(c)
		}
	}
	for _, n := range nodes {
		visit(n)
	}
	return found
}

// each calls fn for every node below n.
func (b *budget) each(n any, fn func(any)) {
	if !b.take(1) {
		return
	}
	for _, c := range children(n) {
		fn(c)
		b.each(c, fn)
	}
}

// measure returns the depth of a template's tree, which bounds the recursion of evaluation. It fails if the depth
// exceeds limits.TemplateDepth. It uses an explicit stack, because a chain of operators is as deep as it is long.
func measure(ctx context.Context, body []stmt) (int, error) {
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
