package ast

import (
	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
)

func (p *parser) parseStatement() (s Stmt, err error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, value.SyntaxError(t.line, "tag name expected")
	}
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.tags = append(p.tags, t.text)
	defer func() { p.tags = p.tags[:len(p.tags)-1] }()
	switch t.text {
	case "macro", "call", "generation":
		if p.named++; p.named > limits.TemplateDefinitions {
			return nil, value.AtLine(value.LimitError("more than %d macros and calls", limits.TemplateDefinitions), t.line)
		}
	}
	switch t.text {
	case "for":
		return p.parseFor()
	case "if":
		return p.parseIf()
	case "set":
		return p.parseSet()
	case "macro":
		return p.parseMacro()
	case "call":
		return p.parseCallBlock()
	case "filter":
		return p.parseFilterBlock()
	case "with":
		return p.parseWith()
	case "print":
		return p.parsePrint()
	case "generation":
		return p.parseGeneration()
	case "break":
		p.next()
		return &Control{"break", t.line}, nil
	case "continue":
		p.next()
		return &Control{"continue", t.line}, nil
	case "autoescape", "block", "extends", "from", "import", "include":
		return nil, value.SyntaxError(t.line, "the tag '%s' is not supported in chat templates", t.text)
	}
	p.tags = p.tags[:len(p.tags)-1]
	err = p.missingTag(t.text)
	p.tags = append(p.tags, t.text)
	return nil, err
}

func (p *parser) parseSet() (Stmt, error) {
	line := p.next().line
	target, err := p.parseTarget(targetOptions{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		right, err := p.parseTuple(tupleOptions{condExpr: true})
		return &Set{Target: target, Value: right, Line: line}, err
	}
	filter, err := p.parseFilters(nil, false)
	if err != nil {
		return nil, err
	}
	body, err := p.parseBlock(true, "endset")
	return &SetBlock{Target: target, Filter: filter, Body: body, Line: line}, err
}

func (p *parser) parseFor() (Stmt, error) {
	f := &For{Line: p.next().line}
	at := p.i
	var err error
	if f.Target, err = p.parseTarget(targetOptions{end: "in"}); err != nil {
		return nil, err
	}
	after := p.i
	if !p.skipName("in") {
		return nil, p.unexpected("in")
	}
	if f.Iter, err = p.parseTuple(tupleOptions{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		// The test has variables of its own, so parse the target again.
		here := p.i
		p.i = at
		f.TestTarget, _ = p.parseTarget(targetOptions{end: "in"})
		p.i = max(here, after)
		if f.Test, err = p.parseExpr(true); err != nil {
			return nil, err
		}
	}
	f.Recursive = p.skipName("recursive")
	if f.Body, err = p.parseBlock(false, "endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		f.Other, err = p.parseBlock(true, "endfor")
	}
	return f, err
}

func (p *parser) parseIf() (Stmt, error) {
	s := &If{Line: p.next().line}
	for {
		test, err := p.parseTuple(tupleOptions{})
		if err != nil {
			return nil, err
		}
		body, err := p.parseBlock(false, "elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.Tests, s.Bodies = append(s.Tests, test), append(s.Bodies, body)
		switch p.next().text {
		case "elif":
			continue
		case "else":
			if s.Other, err = p.parseBlock(true, "endif"); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
}

// parseSignature parses the parameters of a macro.
func (p *parser) parseSignature(m *Macro) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().is(")") {
		if len(m.Args) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		x, err := p.parseTarget(targetOptions{nameOnly: true})
		if err != nil {
			return err
		}
		arg := x.(*Name)
		arg.Use = UseParam
		if p.skipOp("=") {
			d, err := p.parseExpr(true)
			if err != nil {
				return err
			}
			m.Defaults = append(m.Defaults, d)
		} else if len(m.Defaults) > 0 {
			return value.SyntaxError(p.cur().line, "non-default argument follows default argument")
		}
		for _, a := range m.Args {
			if a.Name == arg.Name {
				return value.SyntaxError(arg.Line, "duplicate argument '%s' in macro", arg.Name)
			}
		}
		m.Args = append(m.Args, arg)
		if err := p.tooMany(len(m.Args)); err != nil {
			return err
		}
	}
	return p.expectOp(")")
}

func (p *parser) parseMacro() (Stmt, error) {
	m := &Macro{Line: p.next().line}
	x, err := p.parseTarget(targetOptions{nameOnly: true})
	if err != nil {
		return nil, err
	}
	m.Name = x.(*Name).Name
	if err := p.parseSignature(m); err != nil {
		return nil, err
	}
	m.Body, err = p.parseBlock(true, "endmacro")
	return m, err
}

func (p *parser) parseCallBlock() (Stmt, error) {
	line := p.next().line
	m := &Macro{Line: line}
	if p.cur().is("(") {
		if err := p.parseSignature(m); err != nil {
			return nil, err
		}
	}
	x, err := p.parseExpr(true)
	if err != nil {
		return nil, err
	}
	call, ok := x.(*Call)
	if !ok {
		return nil, value.SyntaxError(line, "expected call")
	}
	m.Body, err = p.parseBlock(true, "endcall")
	return &CallBlock{Call: call, Macro: m, Line: line}, err
}

// parseGeneration parses the generation tag, with which templates mark the assistant's text. It does not affect
// rendering.
func (p *parser) parseGeneration() (Stmt, error) {
	line := p.next().line
	m := &Macro{Line: line}
	var err error
	m.Body, err = p.parseBlock(true, "endgeneration")
	return &Generation{Macro: m, Line: line}, err
}

func (p *parser) parseFilterBlock() (Stmt, error) {
	s := &FilterBlock{Line: p.next().line}
	var err error
	if s.Filter, err = p.parseFilters(nil, true); err != nil {
		return nil, err
	}
	s.Body, err = p.parseBlock(true, "endfilter")
	return s, err
}

func (p *parser) parseWith() (Stmt, error) {
	s := &With{Line: p.next().line}
	for p.cur().kind != tokBlockEnd {
		if len(s.Targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.parseTarget(targetOptions{})
		if err != nil {
			return nil, err
		}
		setUse(target, UseParam)
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		right, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		s.Targets, s.Values = append(s.Targets, target), append(s.Values, right)
	}
	var err error
	s.Body, err = p.parseBlock(true, "endwith")
	return s, err
}

func (p *parser) parsePrint() (Stmt, error) {
	line := p.next().line
	out := &Output{}
	for p.cur().kind != tokBlockEnd {
		if len(out.Items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		x, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		out.Items, out.Lines = append(out.Items, x), append(out.Lines, line)
	}
	return out, nil
}
