package ast

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

func (p *parser) parseExpr(condExpr bool) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if condExpr {
		return p.parseCond()
	}
	return p.parseOr()
}

func (p *parser) parseCond() (Expr, error) {
	line := p.cur().line
	x, err := p.parseOr()
	for err == nil && p.skipName("if") {
		c := &Cond{Yes: x, line: line}
		if c.Test, err = p.parseOr(); err != nil {
			return nil, err
		}
		if p.skipName("else") {
			if err = p.enter(); err != nil {
				return nil, err
			}
			c.No, err = p.parseCond()
			p.leave()
		}
		x, line = c, p.cur().line
	}
	return x, err
}

func (p *parser) parseOr() (Expr, error) {
	l, err := p.parseAnd()
	for err == nil && p.skipName("or") {
		var r Expr
		r, err = p.parseAnd()
		l = &Or{l, r}
	}
	return l, err
}

func (p *parser) parseAnd() (Expr, error) {
	l, err := p.parseNot()
	for err == nil && p.skipName("and") {
		var r Expr
		r, err = p.parseNot()
		l = &And{l, r}
	}
	return l, err
}

func (p *parser) parseNot() (Expr, error) {
	if p.skipName("not") {
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		x, err := p.parseNot()
		return &Not{x}, err
	}
	return p.parseCompare()
}

func (p *parser) parseCompare() (Expr, error) {
	line := p.cur().line
	first, err := p.parseBinary(0)
	if err != nil {
		return nil, err
	}
	c := &Compare{First: first, Line: line}
	for {
		t := p.cur()
		op := ""
		switch {
		case t.is("==") || t.is("!=") || t.is("<") || t.is("<=") || t.is(">") || t.is(">="):
			op = p.next().text
		case t.name("in"):
			op = p.next().text
		case t.name("not") && p.look().name("in"):
			p.next()
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		x, err := p.parseBinary(0)
		if err != nil {
			return nil, err
		}
		c.Ops, c.Rest = append(c.Ops, op), append(c.Rest, x)
	}
	if len(c.Ops) == 0 {
		return first, nil
	}
	return c, nil
}

// binaryLevels are the binary operators from lowest to highest precedence.
var binaryLevels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) parseBinary(level int) (Expr, error) {
	if level == len(binaryLevels) {
		return p.parseUnary(true)
	}
	line := p.cur().line
	l, err := p.parseBinary(level + 1)
	if err != nil {
		return nil, err
	}
	if level == 1 {
		items := []Expr{l}
		for p.skipOp("~") {
			x, err := p.parseBinary(level + 1)
			if err != nil {
				return nil, err
			}
			items = append(items, x)
		}
		if len(items) == 1 {
			return l, nil
		}
		return &Concat{Items: items}, nil
	}
	for {
		t := p.cur()
		found := false
		for _, op := range binaryLevels[level] {
			found = found || t.is(op)
		}
		if !found {
			break
		}
		p.next()
		r, err := p.parseBinary(level + 1)
		if err != nil {
			return nil, err
		}
		l, line = &Binary{Op: t.text, L: l, R: r, Line: line}, p.cur().line
	}
	// The reference compiles a ** b ** c to ((a ** b) ** c), unlike Python.
	return l, nil
}

func (p *parser) parseUnary(withFilter bool) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	t := p.cur()
	var x Expr
	var err error
	if t.is("-") || t.is("+") {
		p.next()
		if x, err = p.parseUnary(false); err == nil {
			x = &Unary{Op: t.text[0], X: x, Line: t.line}
		}
	} else {
		x, err = p.parsePrimary(false)
	}
	if err == nil {
		x, err = p.parsePostfix(x)
	}
	if err == nil && withFilter {
		x, err = p.parseFilterExpr(x)
	}
	return x, err
}

func (p *parser) parsePrimary(namespace bool) (Expr, error) {
	t := p.cur()
	switch {
	case t.kind == tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &Const{true}, nil
		case "false", "False":
			return &Const{false}, nil
		case "none", "None":
			return &Const{nil}, nil
		}
		if namespace && p.skipOp(".") {
			attr, err := p.expectName()
			return &NSRef{Name: t.text, Attr: attr.text, Line: t.line}, err
		}
		return &Name{Name: t.text, Line: t.line}, nil
	case t.kind == tokString:
		var b strings.Builder
		for p.cur().kind == tokString {
			b.WriteString(p.next().text)
		}
		return &Const{b.String()}, nil
	case t.kind == tokInt || t.kind == tokFloat:
		p.next()
		return &Const{t.value}, nil
	case t.is("("):
		p.next()
		x, err := p.parseTuple(tupleOptions{condExpr: true, parens: true})
		if err != nil {
			return nil, err
		}
		return x, p.expectOp(")")
	case t.is("["):
		return p.parseList()
	case t.is("{"):
		return p.parseDict()
	}
	return nil, value.SyntaxError(t.line, "unexpected '%s'", t.describe())
}

func (p *parser) parseList() (Expr, error) {
	p.next()
	x := &List{}
	for !p.cur().is("]") {
		if len(x.Items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("]") {
			break
		}
		i, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		x.Items = append(x.Items, i)
	}
	return x, p.expectOp("]")
}

func (p *parser) parseDict() (Expr, error) {
	p.next()
	x := &Dict{}
	for !p.cur().is("}") {
		if len(x.Keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if p.cur().is("}") {
			break
		}
		k, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		v, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		x.Keys, x.Values = append(x.Keys, k), append(x.Values, v)
	}
	return x, p.expectOp("}")
}
