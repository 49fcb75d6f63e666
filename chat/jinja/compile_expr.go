package jinja

import (
	"slices"

	"github.com/ingotml/ingot/chat/jinja/ast"
	"github.com/ingotml/ingot/chat/jinja/builtin"
	"github.com/ingotml/ingot/chat/jinja/value"
)

func isSliced(n any) bool {
	i, ok := n.(*ast.Item)
	if ok {
		_, ok = i.Arg.(*ast.Slice)
	}
	return ok
}

// markFolded marks a constant slice inside a constant expression, which the reference folds at compile time.
func (c *compiler) markFolded(n any) {
	if isSliced(n) && c.constant(n) {
		c.folded[n.(*ast.Item)] = true
	}
}

// constant reports whether the reference folds an expression: it contains no names, calls or filters that need the
// context.
func (c *compiler) constant(n any) bool {
	if !c.budget.take(1) {
		return false
	}
	switch n := n.(type) {
	case *ast.Name, *ast.NSRef, *ast.Call, *ast.Data:
		return false
	case *ast.Filter:
		switch n.Name {
		case "map", "select", "reject", "selectattr", "rejectattr", "random":
			return false
		}
		if n.X == nil || builtin.Filter(n.Name) == nil {
			return false
		}
	}
	for _, part := range ast.Children(n) {
		if !c.constant(part) {
			return false
		}
	}
	return true
}

func (c *compiler) exprs(list []ast.Expr, f frame) ([]expr, error) {
	if len(list) == 0 {
		return nil, nil
	}
	code := make([]expr, len(list))
	for i, x := range list {
		var err error
		if code[i], err = c.expr(x, f); err != nil {
			return nil, err
		}
	}
	return code, nil
}

// foldSlices marks constant slices among the parts of an expression that the reference folds.
func (c *compiler) foldSlices(x ast.Expr, parts []any) {
	if !slices.ContainsFunc(parts, isSliced) {
		return
	}
	switch x.(type) {
	case *ast.And, *ast.Or, *ast.Cond: // folded if constant parts determine the result
	default:
		if !c.constant(x) {
			return
		}
	}
	for _, child := range parts {
		c.markFolded(child)
	}
}

// parts compiles expressions one after the other until one fails. It keeps that error.
type parts struct {
	c   *compiler
	f   frame
	err error
}

func (p *parts) expr(x ast.Expr) expr {
	if x == nil || p.err != nil {
		return nil
	}
	var code expr
	code, p.err = p.c.expr(x, p.f)
	return code
}

func (p *parts) exprs(list []ast.Expr) []expr {
	if p.err != nil {
		return nil
	}
	var code []expr
	code, p.err = p.c.exprs(list, p.f)
	return code
}

func (p *parts) args(a *ast.Args) callArgs {
	return callArgs{pos: p.exprs(a.Pos), names: a.Names, named: p.exprs(a.Named),
		dynPos: p.expr(a.DynPos), dynNamed: p.expr(a.DynNamed)}
}

// variable returns the variable of a name.
func (c *compiler) variable(name string, line int, f frame) (ref, error) {
	v := f.scope.find(name)
	if v == nil {
		return ref{}, value.SyntaxError(line, "name '%s' is not defined in this scope", name)
	}
	return v.refFrom(f.fn), nil
}

func (c *compiler) expr(x ast.Expr, f frame) (expr, error) {
	if !c.budget.take(1) {
		return nil, c.budget.err
	}
	switch x := x.(type) {
	case *ast.Name:
		v, err := c.variable(x.Name, x.Line, f)
		return &nameExpr{name: x.Name, ref: v}, err
	case *ast.NSRef:
		v, err := c.variable(x.Name, x.Line, f)
		return &nsRef{attr: x.Attr, ref: v}, err
	case *ast.Cond:
		f = f.softened()
	case *ast.Filter:
		if builtin.Filter(x.Name) == nil && !f.soft {
			return nil, value.SyntaxError(x.Line, "no filter named '%s'", x.Name)
		}
	case *ast.Test:
		if builtin.Test(x.Name) == nil && !f.soft {
			return nil, value.SyntaxError(x.Line, "no test named '%s'", x.Name)
		}
	}
	c.foldSlices(x, ast.Children(x))
	p := &parts{c: c, f: f}
	code := p.node(x)
	return code, p.err
}

// node compiles an expression that is not a name. It visits the parts in the order of children.
func (p *parts) node(x ast.Expr) expr {
	switch x := x.(type) {
	case *ast.Const:
		return &constExpr{x.V}
	case *ast.Data:
		return &dataExpr{x.Text}
	case *ast.Tuple:
		return &tupleExpr{p.exprs(x.Items)}
	case *ast.List:
		return &listExpr{p.exprs(x.Items)}
	case *ast.Dict:
		d := &dictExpr{}
		for i := range x.Keys {
			d.keys, d.values = append(d.keys, p.expr(x.Keys[i])), append(d.values, p.expr(x.Values[i]))
		}
		return d
	case *ast.Cond:
		return &condExpr{test: p.expr(x.Test), yes: p.expr(x.Yes), no: p.expr(x.No)}
	case *ast.And:
		return &andExpr{l: p.expr(x.L), r: p.expr(x.R)}
	case *ast.Or:
		return &orExpr{l: p.expr(x.L), r: p.expr(x.R)}
	case *ast.Not:
		return &notExpr{p.expr(x.X)}
	case *ast.Unary:
		return &unaryExpr{op: x.Op, x: p.expr(x.X), line: x.Line}
	case *ast.Binary:
		return &binExpr{op: x.Op, l: p.expr(x.L), r: p.expr(x.R), line: x.Line}
	case *ast.Concat:
		return &concatExpr{p.exprs(x.Items)}
	case *ast.Compare:
		return &compareExpr{first: p.expr(x.First), ops: x.Ops, rest: p.exprs(x.Rest), line: x.Line}
	case *ast.Attr:
		return &attrExpr{x: p.expr(x.X), name: x.Name, line: x.Line}
	case *ast.Item:
		return &itemExpr{x: p.expr(x.X), arg: p.expr(x.Arg), line: x.Line, folded: p.c.folded[x]}
	case *ast.Slice:
		return &sliceExpr{start: p.expr(x.Start), stop: p.expr(x.Stop), step: p.expr(x.Step)}
	case *ast.Call:
		return &callExpr{fn: p.expr(x.Fn), args: p.args(&x.Args), line: x.Line}
	case *ast.Filter:
		return &filterExpr{x: p.expr(x.X), name: x.Name, args: p.args(&x.Args), line: x.Line, fn: builtin.Filter(x.Name)}
	case *ast.Test:
		return &testExpr{x: p.expr(x.X), name: x.Name, args: p.args(&x.Args), line: x.Line, fn: builtin.Test(x.Name)}
	}
	return nil
}
