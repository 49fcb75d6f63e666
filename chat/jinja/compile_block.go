package jinja

import (
	"github.com/ingotml/ingot/chat/jinja/ast"
	"github.com/ingotml/ingot/chat/jinja/value"
)

func (c *compiler) setBlock(s *ast.SetBlock, f frame) (stmt, error) {
	code := &setBlock{line: s.Line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(ast.Stmts(s.Body)...)
	inner := f.inner(code.scope)
	var err error
	if code.body, err = c.stmts(s.Body, inner); err != nil {
		return nil, err
	}
	if code.target, err = c.expr(s.Target, f); err != nil {
		return nil, err
	}
	code.exports = exported(code.target, f)
	if s.Filter != nil {
		if code.filter, err = c.expr(s.Filter, inner); err != nil {
			return nil, err
		}
	}
	code.scope.finish()
	return code, nil
}

func (c *compiler) filterStmt(s *ast.FilterBlock, f frame) (stmt, error) {
	code := &filterStmt{line: s.Line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(ast.Stmts(s.Body)...)
	code.scope.visit(s.Filter)
	inner := f.inner(code.scope)
	var err error
	if code.body, err = c.stmts(s.Body, inner); err != nil {
		return nil, err
	}
	if code.filter, err = c.expr(s.Filter, inner); err != nil {
		return nil, err
	}
	code.scope.finish()
	return code, nil
}

func (c *compiler) withStmt(s *ast.With, f frame) (stmt, error) {
	code := &withStmt{line: s.Line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(ast.Exprs(s.Targets)...)
	code.scope.visit(ast.Stmts(s.Body)...)
	inner := f.inner(code.scope)
	var err error
	if code.values, err = c.exprs(s.Values, f); err != nil {
		return nil, err
	}
	if code.targets, err = c.exprs(s.Targets, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(s.Body, inner); err != nil {
		return nil, err
	}
	code.scope.finish()
	return code, nil
}

func (c *compiler) forStmt(s *ast.For, f frame) (stmt, error) {
	code := &forStmt{recursive: s.Recursive, line: s.Line}
	fn := f.fn
	if s.Recursive {
		fn = &function{parent: f.fn}
		code.fn = fn
	}
	code.bodyScope = c.newScope(fn, f.scope)
	code.extended = s.Recursive || c.budget.undeclared(ast.Stmts(s.Body), "loop")["loop"]
	if err := c.checkLoopName(s); err != nil {
		return nil, err
	}
	if code.extended {
		code.loopRef = code.bodyScope.param("loop").refFrom(fn)
	}
	code.bodyScope.target(s.Target)
	code.bodyScope.visit(ast.Stmts(s.Body)...)
	inner := f.inner(code.bodyScope)
	inner.loop = true
	var err error
	if s.Test != nil {
		code.testScope = c.newScope(fn, f.scope)
		code.testScope.target(s.TestTarget)
		code.testScope.visit(s.Test)
		test := f.inner(code.testScope)
		if code.testTarget, err = c.expr(s.TestTarget, test); err != nil {
			return nil, err
		}
		if code.test, err = c.expr(s.Test, test); err != nil {
			return nil, err
		}
		code.testScope.finish()
	}
	if code.iter, err = c.expr(s.Iter, f); err != nil {
		return nil, err
	}
	if code.target, err = c.expr(s.Target, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(s.Body, inner); err != nil {
		return nil, err
	}
	code.bodyScope.finish()
	if len(s.Other) > 0 {
		code.elseScope = c.newScope(fn, f.scope)
		code.elseScope.visit(ast.Stmts(s.Other)...)
		if code.other, err = c.stmts(s.Other, f.inner(code.elseScope)); err != nil {
			return nil, err
		}
		code.elseScope.finish()
	}
	return code, nil
}

// checkLoopName rejects an assignment to loop inside a for statement.
func (c *compiler) checkLoopName(s *ast.For) error {
	var failed error
	c.budget.each(s, func(n any) {
		if x, ok := n.(*ast.Name); ok && x.Use == ast.UseStore && x.Name == "loop" && failed == nil {
			failed = value.SyntaxError(x.Line, "can't assign to special loop variable in for-loop target")
		}
	})
	return failed
}

// macro compiles the body of a macro or call block as a separate function.
func (c *compiler) macro(m *ast.Macro, f frame) (*macroStmt, error) {
	fn := &function{parent: f.fn}
	fn.scope = c.newScope(fn, f.scope)
	code := &macroStmt{name: m.Name, line: m.Line, fn: fn}
	fn.scope.visit(m.Children()...)
	if err := c.special(m, code); err != nil {
		return nil, err
	}
	inner := frame{scope: fn.scope, fn: fn}
	for _, a := range m.Args {
		x, err := c.expr(a, inner)
		if err != nil {
			return nil, err
		}
		code.args = append(code.args, x.(*nameExpr))
	}
	var err error
	if code.defaults, err = c.exprs(m.Defaults, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(m.Body, inner); err != nil {
		return nil, err
	}
	fn.scope.finish()
	return code, nil
}

// special finds the special arguments that a macro's body reads: caller, kwargs and varargs.
func (c *compiler) special(m *ast.Macro, code *macroStmt) error {
	fn, explicit := code.fn, -1
	declared := map[string]bool{}
	for i, a := range m.Args {
		if a.Name == "caller" {
			explicit = i
		}
		declared[a.Name] = true
	}
	wants := c.budget.undeclared(ast.Stmts(m.Body), "caller", "kwargs", "varargs")
	code.takes.explicitCaller = explicit >= 0
	if wants["caller"] {
		if explicit >= 0 {
			if explicit < len(m.Args)-len(m.Defaults) {
				return value.SyntaxError(m.Line, "the special 'caller' argument must be omitted or be given a default")
			}
		} else {
			code.takes.callerRef = fn.scope.param("caller").refFrom(fn)
		}
		code.takes.caller = true
	}
	if wants["kwargs"] && !declared["kwargs"] {
		code.takes.kwargs, code.takes.kwRef = true, fn.scope.param("kwargs").refFrom(fn)
	}
	if wants["varargs"] && !declared["varargs"] {
		code.takes.varargs, code.takes.varRef = true, fn.scope.param("varargs").refFrom(fn)
	}
	return nil
}
