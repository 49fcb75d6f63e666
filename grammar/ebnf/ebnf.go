// Package ebnf compiles EBNF grammars to expressions over bytes.
//
// Contract: errors name the line. Rules that directly begin with themselves become repetitions; other left recursion is
// left for the compiler of the program. All schemas in a grammar share one limit.
package ebnf

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/schema"
	"github.com/ingotml/ingot/internal/limits"
)

// Compile returns the texts of an EBNF grammar, and what the best effort of its schemas left out.
func Compile(ctx context.Context, source string, o schema.Options) (*expr.Expr, []string, error) {
	if err := expr.CheckSource(source); err != nil {
		return nil, nil, err
	}
	p := &parser{ctx: ctx, source: source, rules: map[string]*expr.Rule{}, defined: map[string]bool{},
		used: map[string]int{}, schemas: schema.Inline{Options: o}}
	if err := p.parse(); err != nil {
		return nil, nil, err
	}
	return expr.Call(p.start), p.schemas.LeftOut, nil
}

type parser struct {
	ctx     context.Context
	source  string
	at      int
	depth   int
	rules   map[string]*expr.Rule
	defined map[string]bool
	used    map[string]int // by rule name: offset of the first call
	start   *expr.Rule
	schemas schema.Inline
	err     error
}

func (p *parser) parse() error {
	p.space()
	for p.at < len(p.source) && p.err == nil {
		from := p.at
		name := p.name()
		if name == "" {
			p.fail(expr.ErrInvalid, "expected a rule name")
			break
		}
		if !p.define() {
			p.fail(expr.ErrInvalid, "expected ::= after the name %s", name)
			break
		}
		r := p.rule(name)
		if p.defined[name] {
			p.at = from
			p.fail(expr.ErrInvalid, "rule %s is defined twice", name)
			break
		}
		p.defined[name] = true
		if p.start == nil || name == "root" {
			p.start = r
		}
		p.ruleBody(r)
		if p.peek() == ';' {
			p.at++
			p.space()
		}
	}
	if p.err != nil {
		return p.err
	}
	if p.start == nil {
		return expr.Errorf(expr.ErrInvalid, "the grammar has no rules")
	}
	for name, at := range p.used {
		if !p.defined[name] {
			p.at = at
			p.fail(expr.ErrInvalid, "rule %s is not defined", name)
		}
	}
	return p.err
}

// ruleBody parses the alternatives of a rule.
func (p *parser) ruleBody(r *expr.Rule) {
	var alts []*expr.Expr
	for {
		alts = append(alts, p.sequence())
		if p.err != nil || p.peek() != '|' {
			break
		}
		p.at++
		p.space()
	}
	r.Body = expr.LeftRecursive(r, alts)
}

func (p *parser) rule(name string) *expr.Rule {
	r, ok := p.rules[name]
	if !ok {
		r = &expr.Rule{Name: name, Body: expr.None}
		p.rules[name] = r
	}
	return r
}

// fail records the first error, with its line.
func (p *parser) fail(kind error, format string, args ...any) {
	if p.err == nil {
		line := 1 + strings.Count(p.source[:min(p.at, len(p.source))], "\n")
		p.err = expr.Errorf(kind, "line %d: "+format, append([]any{line}, args...)...)
	}
}

func (p *parser) peek() byte {
	if p.at < len(p.source) {
		return p.source[p.at]
	}
	return 0
}

// space skips white space and comments.
func (p *parser) space() {
	for p.at < len(p.source) {
		switch p.source[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		case '#':
			for p.at < len(p.source) && p.source[p.at] != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *parser) name() string {
	from := p.at
	for p.at < len(p.source) {
		c := p.source[p.at]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (p.at == from || c != '-' && (c < '0' || c > '9')) {
			break
		}
		p.at++
	}
	name := p.source[from:p.at]
	if name != "" {
		p.space()
	}
	return name
}

// define consumes the definition operator and reports whether there is one.
func (p *parser) define() bool {
	for _, sign := range []string{"::=", "="} {
		if strings.HasPrefix(p.source[p.at:], sign) {
			p.at += len(sign)
			p.space()
			return true
		}
	}
	return false
}

func (p *parser) alternatives() *expr.Expr {
	if p.depth++; p.depth > limits.GrammarNesting {
		p.fail(expr.ErrLimit, "groups are nested more than %d levels deep", limits.GrammarNesting)
		return expr.None
	}
	defer func() { p.depth-- }()
	parts := []*expr.Expr{p.sequence()}
	for p.err == nil && p.peek() == '|' {
		p.at++
		p.space()
		parts = append(parts, p.sequence())
	}
	return expr.Alt(parts...)
}

// sequence parses up to one of | ) ; or the end, or the name of the next rule.
func (p *parser) sequence() *expr.Expr {
	var parts []*expr.Expr
	for p.err == nil {
		if p.err = p.ctx.Err(); p.err != nil {
			break
		}
		var e *expr.Expr
		switch c := p.peek(); c {
		case '"', '\'':
			e = p.literal(c)
		case '[':
			e = p.class()
		case '.':
			p.at++
			e = expr.UTF8(expr.RuneSet{'\n', '\n'}.Not())
		case '(':
			p.at++
			p.space()
			e = p.alternatives()
			if p.err == nil && p.peek() != ')' {
				p.fail(expr.ErrInvalid, "a group has no closing )")
			}
			p.at++
		case '%':
			e = p.schema()
		case '<', '!':
			e = p.token()
		case 0, '|', ')', ';':
			return expr.Seq(parts...)
		default:
			from := p.at
			name := p.name()
			if name == "" {
				r, _ := utf8.DecodeRuneInString(p.source[p.at:])
				p.fail(expr.ErrInvalid, "unexpected %q", r)
				return expr.None
			}
			next := p.at
			if p.define() {
				p.at = from
				return expr.Seq(parts...)
			}
			p.at = next
			if _, ok := p.used[name]; !ok {
				p.used[name] = from
			}
			e = expr.Call(p.rule(name))
		}
		p.space()
		parts = append(parts, p.repeated(e))
	}
	return expr.None
}

// token parses a token terminal, as in llama.cpp's GBNF: <name>, <[id]>, or ! and one of them for all other tokens.
func (p *parser) token() *expr.Expr {
	negated := p.peek() == '!'
	if negated {
		p.at++
	}
	if p.peek() != '<' {
		p.fail(expr.ErrInvalid, "expected a token such as <think> or <[10]> after !")
		return expr.None
	}
	t, length, problem := expr.ParseTokens(p.source[p.at:])
	if problem != "" {
		p.fail(expr.ErrInvalid, "%s", problem)
		return expr.None
	}
	p.at += length
	if negated {
		t = t.Complement()
	}
	return expr.Token(t)
}

// schema parses %json and the schema after it.
func (p *parser) schema() *expr.Expr {
	const sign = "%json"
	if !strings.HasPrefix(p.source[p.at:], sign) {
		p.fail(expr.ErrInvalid, "expected %s and a JSON schema", sign)
		return expr.None
	}
	p.at += len(sign)
	e, length, err := p.schemas.Compile(p.ctx, p.source[p.at:])
	switch {
	case err != nil:
		p.fail(err, "after %s", sign)
		return expr.None
	case e.None():
		p.fail(expr.ErrInvalid, "no value satisfies the schema")
	}
	p.at += length
	return e
}

func (p *parser) repeated(e *expr.Expr) *expr.Expr {
	for n := 0; p.err == nil; n++ {
		if n > limits.GrammarNesting {
			p.fail(expr.ErrLimit, "more than %d nested repetitions", limits.GrammarNesting)
			break
		}
		switch p.peek() {
		case '?':
			e = expr.Opt(e)
		case '*':
			e = expr.Repeat(e, 0, -1)
		case '+':
			e = expr.Repeat(e, 1, -1)
		case '{':
			e = p.counted(e)
		default:
			return e
		}
		p.at++
		p.space()
	}
	return e
}

// counted parses {n}, {n,} or {n,m}, and stops before the closing brace.
func (p *parser) counted(e *expr.Expr) *expr.Expr {
	const longest = 64
	length := strings.IndexByte(p.source[p.at:min(len(p.source), p.at+longest)], '}')
	if length < 0 {
		p.fail(expr.ErrInvalid, "a repetition has no closing }")
		return e
	}
	text := p.source[p.at+1 : p.at+length]
	from, to, span := strings.Cut(text, ",")
	least, err := strconv.ParseUint(strings.TrimSpace(from), 10, 31)
	most := int64(least)
	if span {
		if most = -1; strings.TrimSpace(to) != "" {
			m, bad := strconv.ParseUint(strings.TrimSpace(to), 10, 31)
			if bad != nil {
				err = bad
			}
			most = int64(m)
		}
	}
	if err != nil || most >= 0 && most < int64(least) {
		p.fail(expr.ErrInvalid, "{%s} is not a valid repetition count", text)
		return e
	}
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		p.fail(expr.ErrLimit, "repetition count {%s}; at most %d", text, limits.GrammarRepeat)
		return e
	}
	p.at += length
	return expr.Repeat(e, int(least), int(most))
}
