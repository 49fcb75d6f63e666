package jinja

import "slices"

func (c *compiler) exprs(list []astExpr, f frame) ([]expr, error) {
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
func (c *compiler) foldSlices(x astExpr, parts []any) {
	if !slices.ContainsFunc(parts, isSliced) {
		return
	}
	switch x.(type) {
	case *astAnd, *astOr, *astCond: // folded if constant parts determine the result
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

func (p *parts) expr(x astExpr) expr {
	if x == nil || p.err != nil {
		return nil
	}
	var code expr
	code, p.err = p.c.expr(x, p.f)
	return code
}

func (p *parts) exprs(list []astExpr) []expr {
	if p.err != nil {
		return nil
	}
	var code []expr
	code, p.err = p.c.exprs(list, p.f)
	return code
}

func (p *parts) args(a *astArgs) callArgs {
	return callArgs{pos: p.exprs(a.pos), names: a.names, named: p.exprs(a.named),
		dynPos: p.expr(a.dynPos), dynNamed: p.expr(a.dynNamed)}
}

// variable returns the variable of a name.
func (c *compiler) variable(name string, line int, f frame) (ref, error) {
	v := f.scope.find(name)
	if v == nil {
		return ref{}, syntaxError(line, "name '%s' is not defined in this scope", name)
	}
	return v.refFrom(f.fn), nil
}

func (c *compiler) expr(x astExpr, f frame) (expr, error) {
	if !c.budget.take(1) {
		return nil, c.budget.err
	}
	switch x := x.(type) {
	case *astName:
		v, err := c.variable(x.name, x.line, f)
		return &nameExpr{name: x.name, ref: v}, err
	case *astNSRef:
		v, err := c.variable(x.name, x.line, f)
		return &nsRef{attr: x.attr, ref: v}, err
	case *astCond:
		f = f.softened()
	case *astFilter:
		if filterNamed(x.name) == nil && !f.soft {
			return nil, syntaxError(x.line, "no filter named '%s'", x.name)
		}
	case *astTest:
		if testNamed(x.name) == nil && !f.soft {
			return nil, syntaxError(x.line, "no test named '%s'", x.name)
		}
	}
	c.foldSlices(x, children(x))
	p := &parts{c: c, f: f}
	code := p.node(x)
	return code, p.err
}

// node compiles an expression that is not a name. It visits the parts in the order of children.
func (p *parts) node(x astExpr) expr {
	switch x := x.(type) {
	case *astConst:
		return &constExpr{x.v}
	case *astData:
		return &dataExpr{x.text}
	case *astTuple:
		return &tupleExpr{p.exprs(x.items)}
	case *astList:
		return &listExpr{p.exprs(x.items)}
	case *astDict:
		d := &dictExpr{}
		for i := range x.keys {
			d.keys, d.values = append(d.keys, p.expr(x.keys[i])), append(d.values, p.expr(x.values[i]))
		}
		return d
	case *astCond:
		return &condExpr{test: p.expr(x.test), yes: p.expr(x.yes), no: p.expr(x.no)}
	case *astAnd:
		return &andExpr{l: p.expr(x.l), r: p.expr(x.r)}
	case *astOr:
		return &orExpr{l: p.expr(x.l), r: p.expr(x.r)}
	case *astNot:
		return &notExpr{p.expr(x.x)}
	case *astUnary:
		return &unaryExpr{op: x.op, x: p.expr(x.x), line: x.line}
	case *astBinary:
		return &binExpr{op: x.op, l: p.expr(x.l), r: p.expr(x.r), line: x.line}
	case *astConcat:
		return &concatExpr{p.exprs(x.items)}
	case *astCompare:
		return &compareExpr{first: p.expr(x.first), ops: x.ops, rest: p.exprs(x.rest), line: x.line}
	case *astAttr:
		return &attrExpr{x: p.expr(x.x), name: x.name, line: x.line}
	case *astItem:
		return &itemExpr{x: p.expr(x.x), arg: p.expr(x.arg), line: x.line, folded: p.c.folded[x]}
	case *astSlice:
		return &sliceExpr{start: p.expr(x.start), stop: p.expr(x.stop), step: p.expr(x.step)}
	case *astCall:
		return &callExpr{fn: p.expr(x.fn), args: p.args(&x.args), line: x.line}
	case *astFilter:
		return &filterExpr{x: p.expr(x.x), name: x.name, args: p.args(&x.args), line: x.line, fn: filterNamed(x.name)}
	case *astTest:
		return &testExpr{x: p.expr(x.x), name: x.name, args: p.args(&x.args), line: x.line, fn: testNamed(x.name)}
	}
	return nil
}
