package jinja

import (
	"github.com/ingotml/ingot/chat/jinja/ast"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
)

// budget bounds the work of compiling one template: the compiler visits nested blocks and the names of branches
// repeatedly. When the budget is spent or the context has ended, take returns false, and the compiler stops and returns
// err.
type budget struct {
	meter *work.Meter
	left  int
	seen  int // value of left at the last check of the context
	err   error
}

// take spends n units and reports whether the compiler may continue.
func (b *budget) take(n int) bool {
	if b.err != nil {
		return false
	}
	b.left -= n
	if b.seen-b.left >= 1000 {
		b.seen = b.left
		b.err = value.Look(b.meter)
	}
	if b.left < 0 && b.err == nil {
		b.err = value.LimitError("more than %d steps to compile", limits.TemplateCompile)
	}
	return b.err == nil
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
		if n, ok := n.(*ast.Name); ok {
			if n.Use == ast.UseLoad && open[n.Name] {
				found[n.Name] = true
			} else {
				delete(open, n.Name)
			}
			return
		}
		for _, c := range ast.Children(n) {
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
	for _, c := range ast.Children(n) {
		fn(c)
		b.each(c, fn)
	}
}
