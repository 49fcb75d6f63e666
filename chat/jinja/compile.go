package jinja

import (
	"context"

	"github.com/ingotml/ingot/limits"
)

// compiler turns a tree into code: it resolves names, filters and tests, and reports the errors that the reference
// finds at compile time.
type compiler struct {
	budget *budget
	folded map[*astItem]bool // slices that the reference evaluates at compile time
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

func compile(ctx context.Context, body []astStmt) (*Template, error) {
	c := &compiler{folded: map[*astItem]bool{}}
	c.budget = &budget{ctx: ctx, left: limits.TemplateCompile, seen: limits.TemplateCompile}
	root := &function{}
	root.scope = c.newScope(root, nil)
	root.scope.visit(stmts(body)...)
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

func (c *compiler) stmts(list []astStmt, f frame) ([]stmt, error) {
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

func (c *compiler) stmt(s astStmt, f frame) (stmt, error) {
	switch s := s.(type) {
	case *astOutput:
		for _, x := range s.items {
			c.markFolded(x)
		}
		items, err := c.exprs(s.items, f)
		return &outputStmt{items: items, lines: s.lines}, err
	case *astIf:
		return c.ifStmt(s, f.softened())
	case *astFor:
		return c.forStmt(s, f)
	case *astSet:
		right, err := c.expr(s.value, f)
		if err != nil {
			return nil, err
		}
		target, err := c.expr(s.target, f)
		return &setStmt{target: target, value: right, line: s.line, exports: exported(target, f)}, err
	case *astSetBlock:
		return c.setBlock(s, f)
	case *astMacro:
		m, err := c.macro(s, f)
		if err != nil {
			return nil, err
		}
		m.ref, m.export = f.scope.find(s.name).refFrom(f.fn), f.toplevel
		return m, nil
	case *astCallBlock:
		m, err := c.macro(s.macro, f)
		if err != nil {
			return nil, err
		}
		call, err := c.expr(s.call, f)
		if err != nil {
			return nil, err
		}
		return &callStmt{call: call.(*callExpr), macro: m, line: s.line}, nil
	case *astGeneration:
		m, err := c.macro(s.macro, f)
		call := &callExpr{fn: &constExpr{generationSupport}, line: s.line}
		return &callStmt{call: call, macro: m, line: s.line}, err
	case *astFilterBlock:
		return c.filterStmt(s, f)
	case *astWith:
		return c.withStmt(s, f)
	}
	last := s.(*astControl)
	if !f.loop {
		return nil, syntaxError(last.line, "'%s' outside loop", last.word)
	}
	return &controlStmt{map[string]control{"break": ctlBreak, "continue": ctlContinue}[last.word]}, nil
}

func (c *compiler) ifStmt(s *astIf, f frame) (stmt, error) {
	code := &ifStmt{line: s.line}
	for i := range s.tests {
		test, err := c.expr(s.tests[i], f)
		if err != nil {
			return nil, err
		}
		body, err := c.stmts(s.bodies[i], f)
		if err != nil {
			return nil, err
		}
		code.tests, code.bodies = append(code.tests, test), append(code.bodies, body)
	}
	var err error
	code.other, err = c.stmts(s.other, f)
	return code, err
}

func (c *compiler) setBlock(s *astSetBlock, f frame) (stmt, error) {
	code := &setBlock{line: s.line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(stmts(s.body)...)
	inner := f.inner(code.scope)
	var err error
	if code.body, err = c.stmts(s.body, inner); err != nil {
		return nil, err
	}
	if code.target, err = c.expr(s.target, f); err != nil {
		return nil, err
	}
	code.exports = exported(code.target, f)
	if s.filter != nil {
		if code.filter, err = c.expr(s.filter, inner); err != nil {
			return nil, err
		}
	}
	code.scope.finish()
	return code, nil
}

func (c *compiler) filterStmt(s *astFilterBlock, f frame) (stmt, error) {
	code := &filterStmt{line: s.line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(stmts(s.body)...)
	code.scope.visit(s.filter)
	inner := f.inner(code.scope)
	var err error
	if code.body, err = c.stmts(s.body, inner); err != nil {
		return nil, err
	}
	if code.filter, err = c.expr(s.filter, inner); err != nil {
		return nil, err
	}
	code.scope.finish()
	return code, nil
}

func (c *compiler) withStmt(s *astWith, f frame) (stmt, error) {
	code := &withStmt{line: s.line, scope: c.newScope(f.fn, f.scope)}
	code.scope.visit(exprs(s.targets)...)
	code.scope.visit(stmts(s.body)...)
	inner := f.inner(code.scope)
	var err error
	if code.values, err = c.exprs(s.values, f); err != nil {
		return nil, err
	}
	if code.targets, err = c.exprs(s.targets, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(s.body, inner); err != nil {
		return nil, err
	}
	code.scope.finish()
	return code, nil
}

func isSliced(n any) bool {
	i, ok := n.(*astItem)
	if ok {
		_, ok = i.arg.(*astSlice)
	}
	return ok
}

// markFolded marks a constant slice inside a constant expression, which the reference folds at compile time.
func (c *compiler) markFolded(n any) {
	if isSliced(n) && c.constant(n) {
		c.folded[n.(*astItem)] = true
	}
}

// constant reports whether the reference folds an expression: it contains no names, calls or filters that need the
// context.
func (c *compiler) constant(n any) bool {
	if !c.budget.take(1) {
		return false
	}
	switch n := n.(type) {
	case *astName, *astNSRef, *astCall, *astData:
		return false
	case *astFilter:
		switch n.name {
		case "map", "select", "reject", "selectattr", "rejectattr", "random":
			return false
		}
		if n.x == nil || filterNamed(n.name) == nil {
			return false
		}
	}
	for _, part := range children(n) {
		if !c.constant(part) {
			return false
		}
	}
	return true
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

func (c *compiler) forStmt(s *astFor, f frame) (stmt, error) {
	code := &forStmt{recursive: s.recursive, line: s.line}
	fn := f.fn
	if s.recursive {
		fn = &function{parent: f.fn}
		code.fn = fn
	}
	code.bodyScope = c.newScope(fn, f.scope)
	code.extended = s.recursive || c.budget.undeclared(stmts(s.body), "loop")["loop"]
	if err := c.checkLoopName(s); err != nil {
		return nil, err
	}
	if code.extended {
		code.loopRef = code.bodyScope.param("loop").refFrom(fn)
	}
	code.bodyScope.target(s.target)
	code.bodyScope.visit(stmts(s.body)...)
	inner := f.inner(code.bodyScope)
	inner.loop = true
	var err error
	if s.test != nil {
		code.testScope = c.newScope(fn, f.scope)
		code.testScope.target(s.testTarget)
		code.testScope.visit(s.test)
		test := f.inner(code.testScope)
		if code.testTarget, err = c.expr(s.testTarget, test); err != nil {
			return nil, err
		}
		if code.test, err = c.expr(s.test, test); err != nil {
			return nil, err
		}
		code.testScope.finish()
	}
	if code.iter, err = c.expr(s.iter, f); err != nil {
		return nil, err
	}
	if code.target, err = c.expr(s.target, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(s.body, inner); err != nil {
		return nil, err
	}
	code.bodyScope.finish()
	if len(s.other) > 0 {
		code.elseScope = c.newScope(fn, f.scope)
		code.elseScope.visit(stmts(s.other)...)
		if code.other, err = c.stmts(s.other, f.inner(code.elseScope)); err != nil {
			return nil, err
		}
		code.elseScope.finish()
	}
	return code, nil
}

// checkLoopName rejects an assignment to loop inside a for statement.
func (c *compiler) checkLoopName(s *astFor) error {
	var failed error
	c.budget.each(s, func(n any) {
		if x, ok := n.(*astName); ok && x.use == useStore && x.name == "loop" && failed == nil {
			failed = syntaxError(x.line, "can't assign to special loop variable in for-loop target")
		}
	})
	return failed
}

// macro compiles the body of a macro or call block as a separate function.
func (c *compiler) macro(m *astMacro, f frame) (*macroStmt, error) {
	fn := &function{parent: f.fn}
	fn.scope = c.newScope(fn, f.scope)
	code := &macroStmt{name: m.name, line: m.line, fn: fn}
	fn.scope.visit(m.children()...)
	if err := c.special(m, code); err != nil {
		return nil, err
	}
	inner := frame{scope: fn.scope, fn: fn}
	for _, a := range m.args {
		x, err := c.expr(a, inner)
		if err != nil {
			return nil, err
		}
		code.args = append(code.args, x.(*nameExpr))
	}
	var err error
	if code.defaults, err = c.exprs(m.defaults, inner); err != nil {
		return nil, err
	}
	if code.body, err = c.stmts(m.body, inner); err != nil {
		return nil, err
	}
	fn.scope.finish()
	return code, nil
}

// special finds the special arguments that a macro's body reads: caller, kwargs and varargs.
func (c *compiler) special(m *astMacro, code *macroStmt) error {
	fn, explicit := code.fn, -1
	declared := map[string]bool{}
	for i, a := range m.args {
		if a.name == "caller" {
			explicit = i
		}
		declared[a.name] = true
	}
	wants := c.budget.undeclared(stmts(m.body), "caller", "kwargs", "varargs")
	code.takes.explicitCaller = explicit >= 0
	if wants["caller"] {
		if explicit >= 0 {
			if explicit < len(m.args)-len(m.defaults) {
				return syntaxError(m.line, "the special 'caller' argument must be omitted or be given a default")
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
