package lark

import (
	"context"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/syntax"
	"github.com/ingotml/ingot/internal/limits"
)

// What a node is, beside the nodes of all languages.
const (
	opText    = iota + syntax.OwnOp // a string literal with its flags
	opRange                         // "a".."z": two texts in Subs
	opPattern                       // a regular expression with its flags
	opToken
	opJSON  // a JSON schema
	opRegex // a structured regular expression, as JSON
	opAnd
	opNot
)

// definition is a rule or a terminal.
type definition struct {
	name     string
	terminal bool
	body     *syntax.Node
	lazy     bool
	suffix   *syntax.Node // nil: none
	at       int
}

type parser struct {
	syntax.Parser
	nodes   int
	defs    map[string]*definition
	ignored []*syntax.Node
}

func (p *parser) unsupported(at int, what string) {
	p.Fail(expr.ErrUnsupported, at, "%s of a lark grammar", what)
}

func (p *parser) expect(op string) {
	if !p.Take(op) {
		p.Fail(expr.ErrInvalid, p.Next.At, "expected %s instead of %q", op, expr.Clip(p.Next.Text))
	}
}

func (p *parser) parse(ctx context.Context, source string) {
	for p.Start(ctx, source, p); p.Next.Kind != syntax.End && p.Err == nil; {
		switch p.Next.Kind {
		case newline:
			p.Advance()
			continue
		case directive:
			p.statement()
		default:
			p.definition()
		}
		if p.Err == nil && p.Next.Kind != newline && p.Next.Kind != syntax.End {
			p.Fail(expr.ErrInvalid, p.Next.At, "unexpected %q", expr.Clip(p.Next.Text))
		}
	}
}

func (p *parser) define(d *definition) {
	if p.defs[d.name] != nil {
		p.Fail(expr.ErrInvalid, d.at, "%s is defined twice", d.name)
	}
	p.defs[d.name] = d
}

// definition parses a rule or a terminal up to the end of its last line.
func (p *parser) definition() {
	for p.Is("?") || p.Is("!") { // they shape the tree of a parser
		p.Advance()
	}
	s := p.Advance()
	if s.Kind != rule && s.Kind != terminal {
		p.Fail(expr.ErrInvalid, s.At, "expected the name of a rule or a terminal instead of %q", expr.Clip(s.Text))
		return
	}
	d := &definition{name: s.Text, terminal: s.Kind == terminal, at: s.At}
	switch {
	case p.Is("."):
		p.unsupported(s.At, "the priority of "+s.Text)
	case p.Is("::"):
		p.unsupported(s.At, "the parameter of "+s.Text)
	case p.Is("{"):
		p.unsupported(s.At, "the template "+s.Text)
	}
	if p.Take("[") {
		p.attributes(d)
	}
	p.expect(":")
	d.body = p.Alternatives()
	if p.Err == nil {
		p.define(d)
	}
}

// Another reports whether another alternative follows: a line that begins with | goes on.
func (p *parser) Another() bool {
	for p.Next.Kind == newline && p.Err == nil {
		at, next := p.At, p.Next
		if p.Advance(); !p.Is("|") && p.Depth <= 1 {
			p.At, p.Next = at, next
			break
		}
	}
	if !p.Take("|") {
		return false
	}
	p.skipLines()
	return true
}

// skipLines reads the ends of lines within a group.
func (p *parser) skipLines() {
	for p.Next.Kind == newline && p.Depth > 1 {
		p.Advance()
	}
}

// Ends reports whether a sequence ends, and reads its alias.
func (p *parser) Ends() bool {
	if p.Take("->") {
		p.Advance()
	}
	p.skipLines()
	return p.Next.Kind == newline || p.Next.Kind == syntax.End || p.Is("|") || p.Is(")") || p.Is("]") || p.Is("}")
}

// Part reads a conjunction.
func (p *parser) Part() *syntax.Node {
	n := p.Repeated(p.value())
	for p.Is("&") && p.Err == nil {
		at := p.Advance().At
		n = &syntax.Node{Op: opAnd, At: at, Subs: []*syntax.Node{n, p.Repeated(p.value())}}
	}
	return n
}

// Count reads ~n, ~n..m, {n}, {n,}, {,m} and {n,m}.
func (p *parser) Count() (least, most int, ok bool) {
	at := p.Next.At
	switch {
	case p.Take("~"):
		least = p.count()
		if most = least; p.Take("..") {
			most = p.count()
		}
	case p.Take("{"):
		least, most = p.bounds()
	default:
		return 0, 0, false
	}
	if most >= 0 && most < least {
		p.Fail(expr.ErrInvalid, at, "the repetition from %d to %d times", least, most)
	}
	return least, most, true
}

// bounds parses the rest of {n}, {n,}, {,m} and {n,m}.
func (p *parser) bounds() (least, most int) {
	if p.Next.Kind == number {
		least = p.count()
	}
	if p.Next.Kind != number && !p.Is(",") && !p.Is("}") && least == 0 {
		p.unsupported(p.Next.At, "a template")
	}
	if most = least; p.Take(",") {
		if most = -1; p.Next.Kind == number {
			most = p.count()
		}
	}
	p.expect("}")
	return least, most
}

func (p *parser) count() int {
	s := p.Advance()
	n, err := strconv.ParseUint(s.Text, 10, 31)
	switch {
	case err != nil:
		p.Fail(expr.ErrInvalid, s.At, "%q is not a repetition count", expr.Clip(s.Text))
	case n > limits.GrammarRepeat:
		p.Fail(expr.ErrLimit, s.At, "repetition count %d; at most %d", n, limits.GrammarRepeat)
	}
	return int(n)
}

// value parses what an operator applies to.
func (p *parser) value() *syntax.Node {
	if p.nodes++; p.nodes > limits.GrammarPlaces || !p.Nested() {
		p.Fail(expr.ErrLimit, p.Next.At, "the grammar has more than %d parts", limits.GrammarPlaces)
		return &syntax.Node{}
	}
	defer func() { p.Depth-- }()
	s := p.Next
	n := &syntax.Node{At: s.At, Text: s.Text}
	switch {
	case s.Kind == rule || s.Kind == terminal:
		n.Op = syntax.Name
	case s.Kind == pattern:
		n.Op = opPattern
	case s.Kind == token:
		n.Op = opToken
	case s.Kind == reference:
		p.unsupported(s.At, "the reference "+expr.Clip(s.Text))
	case s.Kind == directive:
		return p.inline()
	case s.Kind == text:
		p.Advance()
		if n.Op = opText; p.Is("..") {
			p.Advance()
			n = &syntax.Node{Op: opRange, At: s.At, Subs: []*syntax.Node{n, {Op: opText, At: p.Next.At, Text: p.Next.Text}}}
			if p.Next.Kind != text {
				p.Fail(expr.ErrInvalid, p.Next.At, "expected a literal after ..")
			}
			p.Advance()
		}
		return n
	case p.Take("~"):
		return &syntax.Node{Op: opNot, At: s.At, Subs: []*syntax.Node{p.value()}}
	case p.Take("("):
		p.Depth++
		n = p.Alternatives()
		p.Depth--
		p.expect(")")
		return n
	case p.Take("["):
		p.Depth++
		n = p.Alternatives()
		p.Depth--
		p.expect("]")
		return &syntax.Node{Op: syntax.Repeat, At: s.At, Subs: []*syntax.Node{n}, Max: 1}
	default:
		p.Fail(expr.ErrInvalid, s.At, "unexpected %q", expr.Clip(s.Text))
	}
	p.Advance()
	if n.Op == syntax.Name && p.Is("::") {
		p.unsupported(s.At, "the parameter of "+s.Text)
	}
	return n
}

// inline parses %json and %regex, and leaves their values to the compiler.
func (p *parser) inline() *syntax.Node {
	s := p.Next
	i := slices.Index([]string{"%json", "%regex"}, s.Text)
	if i < 0 {
		p.unsupported(s.At, s.Text)
		return &syntax.Node{}
	}
	from := p.At
	length, err := jsonLength(p.Source[from:])
	if err != nil {
		p.Fail(expr.ErrInvalid, s.At, "after %s: %v", s.Text, err)
		return &syntax.Node{}
	}
	p.At = from + length
	p.Advance()
	return &syntax.Node{Op: []syntax.Op{opJSON, opRegex}[i], At: s.At, Text: p.Source[from : from+length]}
}
