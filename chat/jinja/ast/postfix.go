package ast

import (
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

// tooMany returns an error if n parameters or arguments exceed the limit.
func (p *parser) tooMany(n int) error {
	if n <= limits.TemplateArguments {
		return nil
	}
	return value.AtLine(value.LimitError("more than %d arguments", limits.TemplateArguments), p.cur().line)
}

func (p *parser) parsePostfix(x Expr) (Expr, error) {
	var err error
	for err == nil {
		switch t := p.cur(); {
		case t.is(".") || t.is("["):
			x, err = p.parseSubscript(x)
		case t.is("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) parseFilterExpr(x Expr) (Expr, error) {
	var err error
	for err == nil {
		switch t := p.cur(); {
		case t.is("|"):
			x, err = p.parseFilters(x, false)
		case t.name("is"):
			x, err = p.parseTest(x)
		case t.is("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) parseSubscript(x Expr) (Expr, error) {
	t := p.next()
	if t.is(".") {
		a := p.next()
		switch a.kind {
		case tokName:
			return &Attr{X: x, Name: a.text, Line: t.line}, nil
		case tokInt:
			return &Item{X: x, Arg: &Const{a.value}, Line: t.line}, nil
		}
		return nil, value.SyntaxError(a.line, "expected name or number")
	}
	var args []Expr
	for !p.cur().is("]") {
		if len(args) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		a, err := p.parseSlice()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	p.next()
	if len(args) == 1 {
		return &Item{X: x, Arg: args[0], Line: t.line}, nil
	}
	return &Item{X: x, Arg: &Tuple{args}, Line: t.line}, nil
}

// parseSlice parses a subscript: an expression or start:stop:step.
func (p *parser) parseSlice() (Expr, error) {
	s := &Slice{}
	var err error
	if !p.skipOp(":") {
		x, err := p.parseExpr(true)
		if err != nil || !p.cur().is(":") {
			return x, err
		}
		p.next()
		s.Start = x
	}
	part := func(x *Expr) {
		if t := p.cur(); err == nil && !t.is("]") && !t.is(",") && !t.is(":") {
			*x, err = p.parseExpr(true)
		}
	}
	if part(&s.Stop); err == nil && p.skipOp(":") {
		if p.cur().is(":") {
			return nil, p.unexpected("]")
		}
		part(&s.Step)
	}
	return s, err
}

func (p *parser) parseCall(fn Expr) (Expr, error) {
	line := p.cur().line
	args, err := p.parseArgs()
	return &Call{Fn: fn, Args: args, Line: line}, err
}

func (p *parser) parseArgs() (a Args, err error) {
	line := p.cur().line
	bad := value.SyntaxError(line, "invalid syntax for function call expression")
	if err = p.expectOp("("); err != nil {
		return a, err
	}
	for comma := false; !p.cur().is(")"); comma = true {
		if comma {
			if err = p.expectOp(","); err != nil {
				return a, err
			}
			if p.cur().is(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			if a.DynPos != nil || a.DynNamed != nil {
				return a, bad
			}
			a.DynPos, err = p.parseExpr(true)
		case p.skipOp("**"):
			if a.DynNamed != nil {
				return a, bad
			}
			a.DynNamed, err = p.parseExpr(true)
		case p.cur().kind == tokName && p.look().is("="):
			if a.DynNamed != nil {
				return a, bad
			}
			name := p.next().text
			p.next()
			for _, n := range a.Names {
				if n == name {
					return a, value.SyntaxError(line, "keyword argument repeated: %s", name)
				}
			}
			var x Expr
			x, err = p.parseExpr(true)
			a.Names, a.Named = append(a.Names, name), append(a.Named, x)
		default:
			if a.DynPos != nil || a.DynNamed != nil || len(a.Names) > 0 {
				return a, bad
			}
			var x Expr
			x, err = p.parseExpr(true)
			a.Pos = append(a.Pos, x)
		}
		if err == nil {
			err = p.tooMany(len(a.Pos) + len(a.Names))
		}
		if err != nil {
			return a, err
		}
	}
	return a, p.expectOp(")")
}

// parseDotted parses the name of a filter or test.
func (p *parser) parseDotted() (string, error) {
	t, err := p.expectName()
	name := []string{t.text}
	for err == nil && p.skipOp(".") {
		t, err = p.expectName()
		name = append(name, t.text)
	}
	return strings.Join(name, "."), err
}

// parseFilters parses "|name(args)|name..."; with inline, the first "|" is absent.
func (p *parser) parseFilters(x Expr, inline bool) (Expr, error) {
	for inline || p.cur().is("|") {
		if !inline {
			p.next()
		}
		inline = false
		f := &Filter{X: x, Line: p.cur().line}
		var err error
		if f.Name, err = p.parseDotted(); err != nil {
			return nil, err
		}
		if p.cur().is("(") {
			if f.Args, err = p.parseArgs(); err != nil {
				return nil, err
			}
		}
		x = f
	}
	return x, nil
}

func (p *parser) parseTest(x Expr) (Expr, error) {
	line := p.next().line
	negated := p.skipName("not")
	t := &Test{X: x, Line: line}
	var err error
	if t.Name, err = p.parseDotted(); err != nil {
		return nil, err
	}
	switch c := p.cur(); {
	case c.is("("):
		t.Args, err = p.parseArgs()
	case c.name("is"):
		return nil, value.SyntaxError(c.line, "you cannot chain multiple tests with is")
	case c.kind == tokName && c.text != "else" && c.text != "or" && c.text != "and",
		c.kind == tokString, c.kind == tokInt, c.kind == tokFloat, c.is("["), c.is("{"):
		if err = p.enter(); err != nil {
			return nil, err
		}
		var a Expr
		if a, err = p.parsePrimary(false); err == nil {
			a, err = p.parsePostfix(a)
		}
		t.Args.Pos = []Expr{a}
		p.leave()
	}
	if negated {
		return &Not{t}, err
	}
	return t, err
}
