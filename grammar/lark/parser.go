package lark

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// node is an expression of a definition.
type node struct {
	op       op
	at       int // offset in the source
	text     string
	subs     []*node
	min, max int
}

type op uint8

const (
	opAlt op = iota
	opSeq
	opRepeat
	opName    // a rule or a terminal
	opText    // a string literal with its flags
	opRange   // "a".."z": two texts in subs
	opPattern // a regular expression with its flags
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
	body     *node
	lazy     bool
	suffix   *node // nil: none
	at       int
}

type parser struct {
	source string
	at     int
	next   symbol
	depth  int
	nodes  int
	err    error

	defs    map[string]*definition
	order   []*definition
	ignored []*node
}

// fail records the first error, with its line.
func (p *parser) fail(kind error, at int, format string, args ...any) {
	if p.err == nil {
		line := 1 + strings.Count(p.source[:min(at, len(p.source))], "\n")
		p.err = expr.Errorf(kind, "line %d: "+format, append([]any{line}, args...)...)
	}
}

func (p *parser) unsupported(at int, what string) {
	p.fail(expr.ErrUnsupported, at, "%s of a lark grammar", what)
}

// advance returns the next symbol and reads the one after it.
func (p *parser) advance() symbol {
	s := p.next
	if p.next = p.scan(); p.err != nil {
		p.next = symbol{end, "", len(p.source)}
	}
	return s
}

func (p *parser) is(op string) bool { return p.next.kind == operator && p.next.text == op }

func (p *parser) take(op string) bool {
	if !p.is(op) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(op string) {
	if !p.take(op) {
		p.fail(expr.ErrInvalid, p.next.at, "expected %s instead of %q", op, expr.Clip(p.next.text))
	}
}

func (p *parser) parse() {
	for p.advance(); p.next.kind != end && p.err == nil; {
		switch p.next.kind {
		case newline:
			p.advance()
			continue
		case directive:
			p.statement()
		default:
			p.definition()
		}
		if p.err == nil && p.next.kind != newline && p.next.kind != end {
			p.fail(expr.ErrInvalid, p.next.at, "unexpected %q", expr.Clip(p.next.text))
		}
	}
}

func (p *parser) define(d *definition) {
	if p.defs[d.name] != nil {
		p.fail(expr.ErrInvalid, d.at, "%s is defined twice", d.name)
	}
	p.defs[d.name] = d
	p.order = append(p.order, d)
}

// definition parses a rule or a terminal up to the end of its last line.
func (p *parser) definition() {
	for p.is("?") || p.is("!") { // they shape the tree of a parser
		p.advance()
	}
	s := p.advance()
	if s.kind != rule && s.kind != terminal {
		p.fail(expr.ErrInvalid, s.at, "expected the name of a rule or a terminal instead of %q", expr.Clip(s.text))
		return
	}
	d := &definition{name: s.text, terminal: s.kind == terminal, at: s.at}
	switch {
	case p.is("."):
		p.unsupported(s.at, "the priority of "+s.text)
	case p.is("::"):
		p.unsupported(s.at, "the parameter of "+s.text)
	case p.is("{"):
		p.unsupported(s.at, "the template "+s.text)
	}
	if p.take("[") {
		p.attributes(d)
	}
	p.expect(":")
	d.body = p.alternatives()
	if p.err == nil {
		p.define(d)
	}
}

// nested bounds the nesting of groups and operators.
func (p *parser) nested() bool {
	if p.depth++; p.depth > limits.GrammarNesting {
		p.fail(expr.ErrLimit, p.next.at, "groups are nested more than %d levels deep", limits.GrammarNesting)
	}
	return p.err == nil
}

func (p *parser) alternatives() *node {
	at := p.next.at
	if !p.nested() {
		return &node{}
	}
	defer func() { p.depth-- }()
	alts := []*node{p.sequence()}
	for p.err == nil {
		if p.next.kind == newline { // a line that begins with | goes on
			was, next := p.at, p.next
			if p.advance(); !p.is("|") {
				if p.depth > 1 {
					continue
				}
				p.at, p.next = was, next
				break
			}
		}
		if !p.take("|") {
			break
		}
		for p.next.kind == newline && p.depth > 1 {
			p.advance()
		}
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return &node{op: opAlt, at: at, subs: alts}
}

func (p *parser) sequence() *node {
	n := &node{op: opSeq, at: p.next.at}
	for p.err == nil {
		if p.take("->") { // an alias
			p.advance()
		}
		for p.next.kind == newline && p.depth > 1 { // within a group
			p.advance()
		}
		if p.next.kind == newline || p.next.kind == end || p.is("|") || p.is(")") || p.is("]") || p.is("}") {
			break
		}
		n.subs = append(n.subs, p.conjunction())
	}
	if len(n.subs) == 1 {
		return n.subs[0]
	}
	return n
}

func (p *parser) conjunction() *node {
	n := p.repeated()
	for p.is("&") && p.err == nil {
		at := p.advance().at
		n = &node{op: opAnd, at: at, subs: []*node{n, p.repeated()}}
	}
	return n
}

func (p *parser) repeated() *node {
	n := p.value()
	for times := 0; p.err == nil; times++ {
		if times > limits.GrammarNesting {
			p.fail(expr.ErrLimit, p.next.at, "more than %d nested repetitions", limits.GrammarNesting)
		}
		at := p.next.at
		least, most := 0, -1
		switch {
		case p.take("?"):
			most = 1
		case p.take("*"):
		case p.take("+"):
			least = 1
		case p.take("~"):
			least = p.count()
			if most = least; p.take("..") {
				most = p.count()
			}
		case p.take("{"):
			least, most = p.bounds()
		default:
			return n
		}
		if most >= 0 && most < least {
			p.fail(expr.ErrInvalid, at, "the repetition from %d to %d times", least, most)
		}
		n = &node{op: opRepeat, at: at, subs: []*node{n}, min: least, max: most}
	}
	return n
}

// bounds parses the rest of {n}, {n,}, {,m} and {n,m}.
func (p *parser) bounds() (least, most int) {
	if p.next.kind == number {
		least = p.count()
	}
	if p.next.kind != number && !p.is(",") && !p.is("}") && least == 0 {
		p.unsupported(p.next.at, "a template")
	}
	if most = least; p.take(",") {
		if most = -1; p.next.kind == number {
			most = p.count()
		}
	}
	p.expect("}")
	return least, most
}

func (p *parser) count() int {
	s := p.advance()
	n, err := strconv.ParseUint(s.text, 10, 31)
	switch {
	case err != nil:
		p.fail(expr.ErrInvalid, s.at, "%q is not a repetition count", expr.Clip(s.text))
	case n > limits.GrammarRepeat:
		p.fail(expr.ErrLimit, s.at, "repetition count %d; at most %d", n, limits.GrammarRepeat)
	}
	return int(n)
}

// value parses what an operator applies to.
func (p *parser) value() *node {
	if p.nodes++; p.nodes > limits.GrammarPlaces || !p.nested() {
		p.fail(expr.ErrLimit, p.next.at, "the grammar has more than %d parts", limits.GrammarPlaces)
		return &node{}
	}
	defer func() { p.depth-- }()
	s := p.next
	n := &node{at: s.at, text: s.text}
	switch {
	case s.kind == rule || s.kind == terminal:
		n.op = opName
	case s.kind == pattern:
		n.op = opPattern
	case s.kind == token:
		n.op = opToken
	case s.kind == reference:
		p.unsupported(s.at, "the reference "+expr.Clip(s.text))
	case s.kind == directive:
		return p.inline()
	case s.kind == text:
		p.advance()
		if n.op = opText; p.is("..") {
			p.advance()
			n = &node{op: opRange, at: s.at, subs: []*node{n, {op: opText, at: p.next.at, text: p.next.text}}}
			if p.next.kind != text {
				p.fail(expr.ErrInvalid, p.next.at, "expected a literal after ..")
			}
			p.advance()
		}
		return n
	case p.take("~"):
		return &node{op: opNot, at: s.at, subs: []*node{p.value()}}
	case p.take("("):
		p.depth++
		n = p.alternatives()
		p.depth--
		p.expect(")")
		return n
	case p.take("["):
		p.depth++
		n = p.alternatives()
		p.depth--
		p.expect("]")
		return &node{op: opRepeat, at: s.at, subs: []*node{n}, max: 1}
	default:
		p.fail(expr.ErrInvalid, s.at, "unexpected %q", expr.Clip(s.text))
	}
	p.advance()
	if n.op == opName && p.is("::") {
		p.unsupported(s.at, "the parameter of "+s.text)
	}
	return n
}

// inline parses %json and %regex, and leaves their values to the compiler.
func (p *parser) inline() *node {
	s := p.next
	i := slices.Index([]string{"%json", "%regex"}, s.text)
	if i < 0 {
		p.unsupported(s.at, s.text)
		return &node{}
	}
	from := p.at
	length, err := jsonLength(p.source[from:])
	if err != nil {
		p.fail(expr.ErrInvalid, s.at, "after %s: %v", s.text, err)
		return &node{}
	}
	p.at = from + length
	p.advance()
	return &node{op: []op{opJSON, opRegex}[i], at: s.at, text: p.source[from : from+length]}
}
