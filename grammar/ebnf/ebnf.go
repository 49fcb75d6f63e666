// Package ebnf compiles EBNF grammars to expressions over bytes.
//
// Contract: errors name the line. Rules that directly begin with themselves become repetitions; other left recursion is
// left for the compiler of the program. All schemas in a grammar share one limit.
package ebnf

import (
	"context"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/grammar/syntax"
)

// Compile returns the texts of an EBNF grammar, and what the best effort of its schemas left out.
func Compile(ctx context.Context, source string, o schema.Options) (*expr.Expr, []string, error) {
	if err := expr.CheckSource(source); err != nil {
		return nil, nil, err
	}
	p := &parser{ctx: ctx, rules: map[string]*expr.Rule{}, schemas: schema.Inline{Options: o}}
	p.Depth = -1 // only what stands in parentheses is nested
	bodies := p.parse(source)
	for _, s := range p.used {
		if p.rules[s.Text] == nil {
			p.Fail(expr.ErrInvalid, s.At, "rule %s is not defined", s.Text)
		}
	}
	switch {
	case p.Err != nil:
		return nil, nil, p.Err
	case p.start == nil:
		return nil, nil, expr.Errorf(expr.ErrInvalid, "the grammar has no rules")
	}
	for r, body := range bodies {
		r.Body = body.Body(r, p.leaf)
	}
	return expr.Call(p.start), p.schemas.LeftOut, nil
}

type parser struct {
	syntax.Parser
	ctx     context.Context
	rules   map[string]*expr.Rule
	used    []syntax.Symbol // names of rules
	start   *expr.Rule
	schemas schema.Inline
}

// leaf returns the texts of a call or of an operand.
func (p *parser) leaf(n *syntax.Node) *expr.Expr {
	if n.Op == syntax.Name {
		return expr.Call(p.rules[n.Text])
	}
	return n.Expr
}

// parse returns the bodies of all rules.
func (p *parser) parse(source string) map[*expr.Rule]*syntax.Node {
	bodies := map[*expr.Rule]*syntax.Node{}
	for p.Start(p.ctx, source, p); p.Next.Kind != syntax.End && p.Err == nil; p.Take(";") {
		if p.Next.Kind != name {
			p.Fail(expr.ErrInvalid, p.Next.At, "expected a rule name")
			break
		}
		s := p.Advance()
		if !p.Take("::=") && !p.Take("=") {
			p.Fail(expr.ErrInvalid, p.Next.At, "expected ::= after the name %s", s.Text)
			break
		}
		if p.rules[s.Text] != nil {
			p.Fail(expr.ErrInvalid, s.At, "rule %s is defined twice", s.Text)
			break
		}
		r := &expr.Rule{Name: s.Text, Body: expr.None}
		p.rules[s.Text] = r
		if p.start == nil || s.Text == "root" {
			p.start = r
		}
		bodies[r] = p.Alternatives()
	}
	return bodies
}

// name is the kind of a symbol that names a rule.
const name = syntax.Own

// Scan returns a name, ::= or one character: the operands are read by their characters.
func (p *parser) Scan() syntax.Symbol {
	p.Space(" \t\r\n", "#")
	from := p.At
	rest := p.Source[from:]
	kind, length := syntax.Operator, 1
	switch n := syntax.NameLength(rest); {
	case rest == "":
		return syntax.Symbol{Kind: syntax.End, At: from}
	case n > 0:
		kind, length = name, n
	case len(rest) >= 3 && rest[:3] == "::=":
		length = 3
	default:
		_, length = utf8.DecodeRuneInString(rest)
	}
	p.At += length
	return syntax.Symbol{Kind: kind, Text: rest[:length], At: from}
}

// Another reports whether another alternative follows.
func (p *parser) Another() bool { return p.Take("|") }

// Ends reports whether a sequence ends: also before the name of the next rule.
func (p *parser) Ends() bool {
	if p.Next.Kind != name {
		return p.Next.Kind == syntax.End || p.Is("|") || p.Is(")") || p.Is(";") || p.Is("\x00")
	}
	at, next := p.At, p.Next
	p.Advance()
	defines := p.Is("::=") || p.Is("=")
	p.At, p.Next = at, next
	return defines
}

// Part reads an operand and its repetitions.
func (p *parser) Part() *syntax.Node { return p.Repeated(p.operand()) }

func (p *parser) operand() *syntax.Node {
	s := p.Next
	switch s.Text {
	case "(":
		p.Advance()
		n := p.Alternatives()
		if !p.Take(")") {
			p.Fail(expr.ErrInvalid, p.Next.At, "a group has no closing )")
		}
		return &syntax.Node{Op: syntax.Seq, Subs: []*syntax.Node{n}} // its alternatives are not those of the rule
	case `"`, "'":
		return p.made(p.literal(s.Text[0]))
	case "[":
		return p.made(p.class())
	case ".":
		return p.made(expr.UTF8(expr.RuneSet{'\n', '\n'}.Not()))
	case "%":
		return p.made(p.schema())
	case "<", "!":
		return p.made(p.token())
	}
	if s.Kind != name {
		r, _ := utf8.DecodeRuneInString(s.Text)
		p.Fail(expr.ErrInvalid, s.At, "unexpected %q", r)
		return &syntax.Node{}
	}
	p.used = append(p.used, p.Advance())
	return &syntax.Node{Op: syntax.Name, Text: s.Text}
}

// made returns the node of an operand that ends before At.
func (p *parser) made(e *expr.Expr) *syntax.Node {
	p.Advance()
	return &syntax.Node{Op: syntax.OwnOp, Expr: e}
}
