package jinja

import (
	"context"
	"slices"

	"github.com/ingotml/ingot/limits"
)

// compiler resolves names, filters and tests of a tree, and reports the errors that the reference finds at compile
// time.
type compiler struct {
	budget *budget
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

func compile(ctx context.Context, body []stmt) (*Template, error) {
	c := &compiler{budget: &budget{ctx: ctx, left: limits.TemplateCompile, seen: limits.TemplateCompile}}
	root := &function{body: body}
	root.scope = c.newScope(root, nil)
	root.scope.visit(stmts(body)...)
	if err := c.stmts(body, frame{scope: root.scope, fn: root, toplevel: true}); err != nil {
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

func (c *compiler) stmts(list []stmt, f frame) error {
	if c.budget.err != nil { // the scope may be incomplete
		return c.budget.err
	}
	for _, s := range list {
		if err := c.stmt(s, f); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) stmt(s stmt, f frame) error {
	switch s := s.(type) {
	case *outputStmt:
		for _, x := range s.items {
			c.markFolded(x)
		}
		return c.exprs(s.items, f)
	case *ifStmt:
		f = f.softened()
		for i := range s.tests {
			if err := c.expr(s.tests[i], f); err != nil {
				return err
			}
			if err := c.stmts(s.bodies[i], f); err != nil {
				return err
			}
		}
		return c.stmts(s.other, f)
	case *forStmt:
		return c.forStmt(s, f)
	case *setStmt:
		if f.toplevel {
			s.exports = targetNames(s.target)
		}
		if err := c.expr(s.value, f); err != nil {
			return err
		}
		return c.expr(s.target, f)
	case *setBlock:
		if f.toplevel {
			s.exports = targetNames(s.target)
		}
		s.scope = c.newScope(f.fn, f.scope)
		s.scope.visit(stmts(s.body)...)
		inner := f.inner(s.scope)
		if err := c.stmts(s.body, inner); err != nil {
			return err
		}
		if err := c.expr(s.target, f); err != nil {
			return err
		}
		if s.filter != nil {
			if err := c.expr(s.filter, inner); err != nil {
				return err
			}
		}
		s.scope.finish()
	case *macroStmt:
		if err := c.macro(s, f); err != nil {
			return err
		}
		s.ref, s.export = f.scope.find(s.name).refFrom(f.fn), f.toplevel
	case *callStmt:
		return c.callBlock(s, f)
	case *generationStmt:
		return c.callBlock(s.call, f)
	case *filterStmt:
		s.scope = c.newScope(f.fn, f.scope)
		s.scope.visit(stmts(s.body)...)
		s.scope.visit(s.filter)
		inner := f.inner(s.scope)
		if err := c.stmts(s.body, inner); err != nil {
			return err
		}
		if err := c.expr(s.filter, inner); err != nil {
			return err
		}
		s.scope.finish()
	case *withStmt:
		s.scope = c.newScope(f.fn, f.scope)
		s.scope.visit(exprs(s.targets)...)
		s.scope.visit(stmts(s.body)...)
		inner := f.inner(s.scope)
		if err := c.exprs(s.values, f); err != nil {
			return err
		}
		if err := c.exprs(s.targets, inner); err != nil {
			return err
		}
		if err := c.stmts(s.body, inner); err != nil {
			return err
		}
		s.scope.finish()
	case *controlStmt:
		if !f.loop {
			name := map[control]string{ctlBreak: "break", ctlContinue: "continue"}[s.what]
			return syntaxError(s.line, "'%s' outside loop", name)
		}
	}
	return nil
}

func isSliced(n any) bool {
	i, ok := n.(*itemExpr)
	if ok {
		_, ok = i.arg.(*sliceExpr)
	}
	return ok
}

// markFolded marks a constant slice inside a constant expression, which the reference folds at compile time.
func (c *compiler) markFolded(n any) {
	if isSliced(n) && c.constant(n) {
		n.(*itemExpr).folded = true
	}
}

// constant reports whether the reference folds an expression: it contains no names, calls or filters that need the
// context.
func (c *compiler) constant(n any) bool {
	if !c.budget.take(1) {
		return false
	}
	switch n := n.(type) {
	case *nameExpr, *nsRef, *callExpr, *dataExpr:
		return false
	case *filterExpr:
		switch n.name {
		case "map", "select", "reject", "selectattr", "rejectattr", "random":
			return false
		}
		if n.x == nil || filters[n.name] == nil {
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

// targetNames returns the plain names of a target.
func targetNames(x expr) []*nameExpr {
	switch x := x.(type) {
	case *nameExpr:
		return []*nameExpr{x}
	case *tupleExpr:
		var all []*nameExpr
		for _, i := range x.items {
			all = append(all, targetNames(i)...)
		}
		return all
	}
	return nil
}

func (c *compiler) forStmt(s *forStmt, f frame) error {
	fn := f.fn
	if s.recursive {
		fn = &function{parent: f.fn}
		s.fn = fn
	}
	s.bodyScope = c.newScope(fn, f.scope)
	s.extended = s.recursive || c.budget.undeclared(stmts(s.body), "loop")["loop"]
	var failed error
	c.budget.each(s, func(n any) {
		if x, ok := n.(*nameExpr); ok && x.use == useStore && x.name == "loop" && failed == nil {
			failed = syntaxError(x.line, "can't assign to special loop variable in for-loop target")
		}
	})
	if failed != nil {
		return failed
	}
	if s.extended {
		s.loopRef = s.bodyScope.param("loop").refFrom(fn)
	}
	s.bodyScope.target(s.target)
	s.bodyScope.visit(stmts(s.body)...)
	inner := f.inner(s.bodyScope)
	inner.loop = true
	if s.test != nil {
		s.testScope = c.newScope(fn, f.scope)
		s.testScope.target(s.testTarget)
		s.testScope.visit(s.test)
		test := f.inner(s.testScope)
		if err := c.expr(s.testTarget, test); err != nil {
			return err
		}
		if err := c.expr(s.test, test); err != nil {
			return err
		}
		s.testScope.finish()
	}
	if err := c.expr(s.iter, f); err != nil {
		return err
	}
	if err := c.expr(s.target, inner); err != nil {
		return err
	}
	if err := c.stmts(s.body, inner); err != nil {
		return err
	}
	s.bodyScope.finish()
	if len(s.other) > 0 {
		s.elseScope = c.newScope(fn, f.scope)
		s.elseScope.visit(stmts(s.other)...)
		if err := c.stmts(s.other, f.inner(s.elseScope)); err != nil {
			return err
		}
		s.elseScope.finish()
	}
	return nil
}

func (c *compiler) callBlock(s *callStmt, f frame) error {
	if err := c.macro(s.macro, f); err != nil {
		return err
	}
	return c.expr(s.call, f)
}

// macro compiles the body of a macro or call block as a separate function.
func (c *compiler) macro(m *macroStmt, f frame) error {
	fn := &function{parent: f.fn, body: m.body}
	fn.scope = c.newScope(fn, f.scope)
	m.fn = fn
	fn.scope.visit(m.children()...)
	explicit := -1
	special := map[string]bool{}
	for i, a := range m.args {
		if a.name == "caller" {
			explicit = i
		}
		special[a.name] = true
	}
	wants := c.budget.undeclared(stmts(m.body), "caller", "kwargs", "varargs")
	m.takes.explicitCaller = explicit >= 0
	if wants["caller"] {
		if explicit >= 0 {
			if explicit < len(m.args)-len(m.defaults) {
				return syntaxError(m.line, "the special 'caller' argument must be omitted or be given a default")
			}
		} else {
			m.takes.callerRef = fn.scope.param("caller").refFrom(fn)
		}
		m.takes.caller = true
	}
	if wants["kwargs"] && !special["kwargs"] {
		m.takes.kwargs, m.takes.kwRef = true, fn.scope.param("kwargs").refFrom(fn)
	}
	if wants["varargs"] && !special["varargs"] {
		m.takes.varargs, m.takes.varRef = true, fn.scope.param("varargs").refFrom(fn)
	}
	inner := frame{scope: fn.scope, fn: fn}
	for _, a := range m.args {
		if err := c.expr(a, inner); err != nil {
			return err
		}
	}
	if err := c.exprs(m.defaults, inner); err != nil {
		return err
	}
	if err := c.stmts(m.body, inner); err != nil {
		return err
	}
	fn.scope.finish()
	return nil
}

func (c *compiler) exprs(list []expr, f frame) error {
	for _, x := range list {
		if err := c.expr(x, f); err != nil {
			return err
		}
	}
	return nil
}

// foldSlices marks constant slices among the parts of an expression that the reference folds.
func (c *compiler) foldSlices(x expr, parts []any) {
	if !slices.ContainsFunc(parts, isSliced) {
		return
	}
	switch x.(type) {
	case *andExpr, *orExpr, *condExpr: // folded if constant parts determine the result
	default:
		if !c.constant(x) {
			return
		}
	}
	for _, child := range parts {
		c.markFolded(child)
	}
}

func (c *compiler) expr(x expr, f frame) error {
	if !c.budget.take(1) {
		return c.budget.err
	}
	switch x := x.(type) {
	case *nameExpr:
		v := f.scope.find(x.name)
		if v == nil {
			return syntaxError(x.line, "name '%s' is not defined in this scope", x.name)
		}
		x.ref = v.refFrom(f.fn)
		return nil
	case *nsRef:
		v := f.scope.find(x.name)
		if v == nil {
			return syntaxError(x.line, "name '%s' is not defined in this scope", x.name)
		}
		x.ref = v.refFrom(f.fn)
		return nil
	case *condExpr:
		f = f.softened()
	case *filterExpr:
		if x.fn = filters[x.name]; x.fn == nil && !f.soft {
			return syntaxError(x.line, "no filter named '%s'", x.name)
		}
	case *testExpr:
		if x.fn = tests[x.name]; x.fn == nil && !f.soft {
			return syntaxError(x.line, "no test named '%s'", x.name)
		}
	}
	parts := children(x)
	c.foldSlices(x, parts)
	for _, child := range parts {
		if err := c.expr(child.(expr), f); err != nil {
			return err
		}
	}
	return nil
}
