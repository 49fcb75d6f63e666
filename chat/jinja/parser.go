package jinja

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/limits"
)

// maxRecursion bounds the parser's recursion. A nested expression takes several levels of it.
const maxRecursion = 8 * limits.TemplateNesting

// parser builds the tree like jinja2's parser. Its parse methods correspond to the rules of the grammar.
type parser struct {
	toks  []token
	i     int
	depth int
	tags  []string
	ends  [][]string
	named int // number of macros and calls
	ctx   context.Context
}

// parse parses a template. Its recursion is bounded. Its loops build deep one-sided trees, which measure bounds.
func parse(ctx context.Context, source string) ([]astStmt, error) {
	toks, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, ctx: ctx}
	return p.parseBody(nil)
}

func (p *parser) cur() token  { return p.toks[p.i] }
func (p *parser) look() token { return p.toks[min(p.i+1, len(p.toks)-1)] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if p.i < len(p.toks)-1 {
		p.i++
	}
	return t
}

func (p *parser) skipOp(op string) bool {
	if p.cur().is(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(n string) bool {
	if p.cur().name(n) {
		p.next()
		return true
	}
	return false
}

func (p *parser) unexpected(want string) error {
	t := p.cur()
	if t.kind == tokEOF {
		return syntaxError(t.line, "unexpected end of template, expected '%s'", want)
	}
	return syntaxError(t.line, "expected token '%s', got '%s'", want, t.describe())
}

func (p *parser) expectOp(op string) error {
	if !p.skipOp(op) {
		return p.unexpected(op)
	}
	return nil
}

func (p *parser) expectName() (token, error) {
	if p.cur().kind != tokName {
		return token{}, p.unexpected("name")
	}
	return p.next(), nil
}

func (p *parser) expectKind(k tokenKind) error {
	if p.cur().kind != k {
		return p.unexpected(token{kind: k}.describe())
	}
	p.next()
	return nil
}

// enter counts a level of recursion, which bounds the stack.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxRecursion {
		return atLine(limitError("nested too deeply"), p.cur().line)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// parseBody parses template data, print statements and tags up to one of ends, which stays the current token.
func (p *parser) parseBody(ends []string) ([]astStmt, error) {
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	if len(p.ends) > limits.TemplateNesting {
		return nil, atLine(limitError("blocks nested too deeply"), p.cur().line)
	}
	var body []astStmt
	out := &astOutput{}
	flush := func() {
		if len(out.items) > 0 {
			body = append(body, out)
			out = &astOutput{}
		}
	}
	for {
		t := p.cur()
		switch t.kind {
		case tokEOF:
			flush()
			if ends != nil {
				return nil, p.missingTag("")
			}
			return body, nil
		case tokData:
			out.items, out.lines = append(out.items, &astData{t.text}), append(out.lines, t.line)
			p.next()
		case tokVarBegin:
			p.next()
			x, err := p.parseTuple(tupleOptions{condExpr: true})
			if err != nil {
				return nil, err
			}
			out.items, out.lines = append(out.items, x), append(out.lines, t.line)
			if err := p.expectKind(tokVarEnd); err != nil {
				return nil, err
			}
		case tokBlockBegin:
			flush()
			p.next()
			if t := p.cur(); t.kind == tokName && slices.Contains(ends, t.text) {
				return body, nil
			}
			s, err := p.parseStatement()
			if err != nil {
				return nil, err
			}
			if s != nil {
				body = append(body, s)
			}
			if err := p.expectKind(tokBlockEnd); err != nil {
				return nil, err
			}
		default:
			return nil, syntaxError(t.line, "unexpected '%s'", t.describe())
		}
	}
}

// missingTag returns the error of an unknown tag, or with an empty name, of an unexpected end of the template.
func (p *parser) missingTag(name string) error {
	msg := "unexpected end of template"
	if name != "" {
		msg = "unknown tag '" + name + "'"
	}
	if len(p.ends) > 0 {
		msg += "; looking for '" + strings.Join(p.ends[len(p.ends)-1], "' or '") + "'"
	}
	if len(p.tags) > 0 {
		msg += "; the innermost block that needs to be closed is '" + p.tags[len(p.tags)-1] + "'"
	}
	return syntaxError(p.cur().line, "%s", msg)
}

// parseBlock parses the end of the current tag and the statements up to one of ends. With drop it also consumes the
// name of the end tag.
func (p *parser) parseBlock(drop bool, ends ...string) ([]astStmt, error) {
	p.skipOp(":")
	if err := p.expectKind(tokBlockEnd); err != nil {
		return nil, err
	}
	body, err := p.parseBody(ends)
	if err == nil && drop {
		p.next()
	}
	return body, err
}

func (p *parser) parseStatement() (s astStmt, err error) {
	t := p.cur()
	if t.kind != tokName {
		return nil, syntaxError(t.line, "tag name expected")
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
			return nil, atLine(limitError("more than %d macros and calls", limits.TemplateDefinitions), t.line)
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
		return &astControl{"break", t.line}, nil
	case "continue":
		p.next()
		return &astControl{"continue", t.line}, nil
	case "autoescape", "block", "extends", "from", "import", "include":
		return nil, syntaxError(t.line, "the tag '%s' is not supported in chat templates", t.text)
	}
	p.tags = p.tags[:len(p.tags)-1]
	err = p.missingTag(t.text)
	p.tags = append(p.tags, t.text)
	return nil, err
}

func (p *parser) parseSet() (astStmt, error) {
	line := p.next().line
	target, err := p.parseTarget(targetOptions{namespace: true})
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		right, err := p.parseTuple(tupleOptions{condExpr: true})
		return &astSet{target: target, value: right, line: line}, err
	}
	filter, err := p.parseFilters(nil, false)
	if err != nil {
		return nil, err
	}
	body, err := p.parseBlock(true, "endset")
	return &astSetBlock{target: target, filter: filter, body: body, line: line}, err
}

func (p *parser) parseFor() (astStmt, error) {
	f := &astFor{line: p.next().line}
	at := p.i
	var err error
	if f.target, err = p.parseTarget(targetOptions{end: "in"}); err != nil {
		return nil, err
	}
	after := p.i
	if !p.skipName("in") {
		return nil, p.unexpected("in")
	}
	if f.iter, err = p.parseTuple(tupleOptions{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipName("if") {
		// The test has variables of its own, so parse the target again.
		here := p.i
		p.i = at
		f.testTarget, _ = p.parseTarget(targetOptions{end: "in"})
		p.i = max(here, after)
		if f.test, err = p.parseExpr(true); err != nil {
			return nil, err
		}
	}
	f.recursive = p.skipName("recursive")
	if f.body, err = p.parseBlock(false, "endfor", "else"); err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		f.other, err = p.parseBlock(true, "endfor")
	}
	return f, err
}

func (p *parser) parseIf() (astStmt, error) {
	s := &astIf{line: p.next().line}
	for {
		test, err := p.parseTuple(tupleOptions{})
		if err != nil {
			return nil, err
		}
		body, err := p.parseBlock(false, "elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		switch p.next().text {
		case "elif":
			continue
		case "else":
			if s.other, err = p.parseBlock(true, "endif"); err != nil {
				return nil, err
			}
		}
		return s, nil
	}
}

// parseSignature parses the parameters of a macro.
func (p *parser) parseSignature(m *astMacro) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.cur().is(")") {
		if len(m.args) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		x, err := p.parseTarget(targetOptions{nameOnly: true})
		if err != nil {
			return err
		}
		arg := x.(*astName)
		arg.use = useParam
		if p.skipOp("=") {
			d, err := p.parseExpr(true)
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, d)
		} else if len(m.defaults) > 0 {
			return syntaxError(p.cur().line, "non-default argument follows default argument")
		}
		for _, a := range m.args {
			if a.name == arg.name {
				return syntaxError(arg.line, "duplicate argument '%s' in macro", arg.name)
			}
		}
		m.args = append(m.args, arg)
		if err := p.tooMany(len(m.args)); err != nil {
			return err
		}
	}
	return p.expectOp(")")
}

func (p *parser) parseMacro() (astStmt, error) {
	m := &astMacro{line: p.next().line}
	x, err := p.parseTarget(targetOptions{nameOnly: true})
	if err != nil {
		return nil, err
	}
	m.name = x.(*astName).name
	if err := p.parseSignature(m); err != nil {
		return nil, err
	}
	m.body, err = p.parseBlock(true, "endmacro")
	return m, err
}

func (p *parser) parseCallBlock() (astStmt, error) {
	line := p.next().line
	m := &astMacro{line: line}
	if p.cur().is("(") {
		if err := p.parseSignature(m); err != nil {
			return nil, err
		}
	}
	x, err := p.parseExpr(true)
	if err != nil {
		return nil, err
	}
	call, ok := x.(*astCall)
	if !ok {
		return nil, syntaxError(line, "expected call")
	}
	m.body, err = p.parseBlock(true, "endcall")
	return &astCallBlock{call: call, macro: m, line: line}, err
}

// parseGeneration parses the generation tag, with which templates mark the assistant's text. It does not affect
// rendering.
func (p *parser) parseGeneration() (astStmt, error) {
	line := p.next().line
	m := &astMacro{line: line}
	var err error
	m.body, err = p.parseBlock(true, "endgeneration")
	return &astGeneration{macro: m, line: line}, err
}

func (p *parser) parseFilterBlock() (astStmt, error) {
	s := &astFilterBlock{line: p.next().line}
	var err error
	if s.filter, err = p.parseFilters(nil, true); err != nil {
		return nil, err
	}
	s.body, err = p.parseBlock(true, "endfilter")
	return s, err
}

func (p *parser) parseWith() (astStmt, error) {
	s := &astWith{line: p.next().line}
	for p.cur().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		target, err := p.parseTarget(targetOptions{})
		if err != nil {
			return nil, err
		}
		setUse(target, useParam)
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		right, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		s.targets, s.values = append(s.targets, target), append(s.values, right)
	}
	var err error
	s.body, err = p.parseBlock(true, "endwith")
	return s, err
}

func (p *parser) parsePrint() (astStmt, error) {
	line := p.next().line
	out := &astOutput{}
	for p.cur().kind != tokBlockEnd {
		if len(out.items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		x, err := p.parseExpr(true)
		if err != nil {
			return nil, err
		}
		out.items, out.lines = append(out.items, x), append(out.lines, line)
	}
	return out, nil
}
