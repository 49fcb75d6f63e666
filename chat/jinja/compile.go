package jinja

import (
	"context"

	"github.com/ingotml/ingot/chat/jinja/ast"
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/work"
)

// compiler turns a tree into code: it resolves names, filters and tests, and reports the errors that the reference
// finds at compile time.
type compiler struct {
	budget *budget
	folded map[*ast.Item]bool // slices that the reference evaluates at compile time
}

// frame is the current position of the compiler.
type frame struct {
	scope    *scope
	fn       *function
	toplevel bool // assignments also set context variables
	soft     bool // inside an if: unknown filters and tests fail only when evaluated
	loop     bool // break and continue are allowed
}

func (f frame) inner(s *scope) frame {
	return frame{scope: s, fn: s.fn, loop: f.loop && s.fn == f.fn}
}

func (f frame) softened() frame {
	f.soft = true
	return f
}

func compile(ctx context.Context, body []ast.Stmt) (*Template, error) {
	c := &compiler{folded: map[*ast.Item]bool{}}
	meter := work.Start(ctx, work.Limits{})
	defer meter.Done()
	c.budget = &budget{meter: meter, left: limits.TemplateCompile, seen: limits.TemplateCompile}
	root := &function{}
	root.scope = c.newScope(root, nil)
	root.scope.visit(ast.Stmts(body)...)
	var err error
	if root.body, err = c.stmts(body, frame{scope: root.scope, fn: root, toplevel: true}); err != nil {
		return nil, err
	}
	root.scope.finish()
	return &Template{root: root}, nil
}

func (c *compiler) newScope(fn *function, parent *scope) *scope {
	s := newScope(fn, parent)
	s.budget = c.budget
	return s
}

func (c *compiler) stmts(list []ast.Stmt, f frame) ([]stmt, error) {
	if c.budget.err != nil { // the scope may be incomplete
		return nil, c.budget.err
	}
	code := make([]stmt, len(list))
	for i, s := range list {
		var err error
		if code[i], err = c.stmt(s, f); err != nil {
			return nil, err
		}
	}
	return code, nil
}

func (c *compiler) stmt(s ast.Stmt, f frame) (stmt, error) {
	switch s := s.(type) {
	case *ast.Output:
		for _, x := range s.Items {
			c.markFolded(x)
		}
		items, err := c.exprs(s.Items, f)
		return &outputStmt{items: items, lines: s.Lines}, err
	case *ast.If:
		return c.ifStmt(s, f.softened())
	case *ast.For:
		return c.forStmt(s, f)
	case *ast.Set:
		right, err := c.expr(s.Value, f)
		if err != nil {
			return nil, err
		}
		target, err := c.expr(s.Target, f)
		return &setStmt{target: target, value: right, line: s.Line, exports: exported(target, f)}, err
	case *ast.SetBlock:
		return c.setBlock(s, f)
	case *ast.Macro:
		m, err := c.macro(s, f)
		if err != nil {
			return nil, err
		}
		m.ref, m.export = f.scope.find(s.Name).refFrom(f.fn), f.toplevel
		return m, nil
	case *ast.CallBlock:
		m, err := c.macro(s.Macro, f)
		if err != nil {
			return nil, err
		}
		call, err := c.expr(s.Call, f)
		if err != nil {
			return nil, err
		}
		return &callStmt{call: call.(*callExpr), macro: m, line: s.Line}, nil
	case *ast.Generation:
		m, err := c.macro(s.Macro, f)
		call := &callExpr{fn: &constExpr{generationSupport}, line: s.Line}
		return &callStmt{call: call, macro: m, line: s.Line}, err
	case *ast.FilterBlock:
		return c.filterStmt(s, f)
	case *ast.With:
		return c.withStmt(s, f)
	}
	last := s.(*ast.Control)
	if !f.loop {
		return nil, value.SyntaxError(last.Line, "'%s' outside loop", last.Word)
	}
	return &controlStmt{map[string]control{"break": ctlBreak, "continue": ctlContinue}[last.Word]}, nil
}

func (c *compiler) ifStmt(s *ast.If, f frame) (stmt, error) {
	code := &ifStmt{line: s.Line}
	for i := range s.Tests {
		test, err := c.expr(s.Tests[i], f)
		if err != nil {
			return nil, err
		}
		body, err := c.stmts(s.Bodies[i], f)
		if err != nil {
			return nil, err
		}
		code.tests, code.bodies = append(code.tests, test), append(code.bodies, body)
	}
	var err error
	code.other, err = c.stmts(s.Other, f)
	return code, err
}

// exported returns the names of a target that are also set in the context: all at the top level of the template.
func exported(target expr, f frame) []*nameExpr {
	if !f.toplevel {
		return nil
	}
	switch x := target.(type) {
	case *nameExpr:
		return []*nameExpr{x}
	case *tupleExpr:
		var all []*nameExpr
		for _, i := range x.items {
			all = append(all, exported(i, f)...)
		}
		return all
	}
	return nil
}
