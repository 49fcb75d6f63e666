package ast

import (
	"context"
	"slices"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
	"github.com/ingotml/ingot/internal/limits"
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

// Parse parses a template. Its recursion is bounded. Its loops build deep one-sided trees, which measure bounds.
func Parse(ctx context.Context, source string) ([]Stmt, error) {
	toks, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks, ctx: ctx}
	return p.parseBody(nil)
}

func (p *parser) cur() token { return p.toks[p.i] }

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
		return value.SyntaxError(t.line, "unexpected end of template, expected '%s'", want)
	}
	return value.SyntaxError(t.line, "expected token '%s', got '%s'", want, t.describe())
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
		return value.AtLine(value.LimitError("nested too deeply"), p.cur().line)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// parseBody parses template data, print statements and tags up to one of ends, which stays the current token.
func (p *parser) parseBody(ends []string) ([]Stmt, error) {
	if ends != nil {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	if len(p.ends) > limits.TemplateNesting {
		return nil, value.AtLine(value.LimitError("blocks nested too deeply"), p.cur().line)
	}
	var body []Stmt
	out := &Output{}
	flush := func() {
		if len(out.Items) > 0 {
			body = append(body, out)
			out = &Output{}
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
			out.Items, out.Lines = append(out.Items, &Data{t.text}), append(out.Lines, t.line)
			p.next()
		case tokVarBegin:
			p.next()
			x, err := p.parseTuple(tupleOptions{condExpr: true})
			if err != nil {
				return nil, err
			}
			out.Items, out.Lines = append(out.Items, x), append(out.Lines, t.line)
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
			return nil, value.SyntaxError(t.line, "unexpected '%s'", t.describe())
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
	return value.SyntaxError(p.cur().line, "%s", msg)
}

// parseBlock parses the end of the current tag and the statements up to one of ends. With drop it also consumes the
// name of the end tag.
func (p *parser) parseBlock(drop bool, ends ...string) ([]Stmt, error) {
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
