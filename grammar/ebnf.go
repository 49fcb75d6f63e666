package grammar

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
)

// ebnfExpr returns the texts of an EBNF grammar.
func ebnfExpr(ctx context.Context, source string) (*expr, error) {
	if len(source) > limits.GrammarSource {
		return nil, failure(errLimit, "the grammar has %d bytes; at most %d are allowed", len(source), limits.GrammarSource)
	}
	if !utf8.ValidString(source) {
		return nil, failure(errInvalid, "the grammar is not UTF-8")
	}
	p := &ebnfParser{ctx: ctx, source: source, rules: map[string]*rule{}, defined: map[string]bool{},
		used: map[string]int{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return callExpr(p.start), nil
}

type ebnfParser struct {
	ctx     context.Context
	source  string
	at      int
	depth   int
	rules   map[string]*rule
	defined map[string]bool
	used    map[string]int // by rule name: offset of the first call
	start   *rule
	schemas inlineSchemas
	err     error
}

func (p *ebnfParser) parse() error {
	p.space()
	for p.at < len(p.source) && p.err == nil {
		from := p.at
		name := p.name()
		if name == "" {
			p.fail(errInvalid, "expected a rule name")
			break
		}
		if !p.define() {
			p.fail(errInvalid, "expected ::= after the name %s", name)
			break
		}
		r := p.rule(name)
		if p.defined[name] {
			p.at = from
			p.fail(errInvalid, "rule %s is defined twice", name)
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
		return failure(errInvalid, "the grammar has no rules")
	}
	for name, at := range p.used {
		if !p.defined[name] {
			p.at = at
			p.fail(errInvalid, "rule %s is not defined", name)
		}
	}
	return p.err
}

// ruleBody parses the alternatives of a rule. It rewrites direct left recursion: a ::= a x | y becomes y x*.
func (p *ebnfParser) ruleBody(r *rule) {
	var bases, tails []*expr
	for {
		e := p.sequence()
		head := e
		if e.op == exprSeq && len(e.subs) > 0 {
			head = e.subs[0]
		}
		if head.op == exprCall && head.rule == r {
			if e.op == exprSeq {
				tails = append(tails, seqExpr(e.subs[1:]...))
			}
		} else {
			bases = append(bases, e)
		}
		if p.err != nil || p.peek() != '|' {
			break
		}
		p.at++
		p.space()
	}
	r.body = seqExpr(altExpr(bases...), repeatExpr(altExpr(tails...), 0, -1))
}

func (p *ebnfParser) rule(name string) *rule {
	r, ok := p.rules[name]
	if !ok {
		r = &rule{name: name, body: noExpr}
		p.rules[name] = r
	}
	return r
}

// fail records the first error, with its line.
func (p *ebnfParser) fail(kind error, format string, args ...any) {
	if p.err == nil {
		line := 1 + strings.Count(p.source[:min(p.at, len(p.source))], "\n")
		p.err = failure(kind, "line %d: "+format, append([]any{line}, args...)...)
	}
}

func (p *ebnfParser) peek() byte {
	if p.at < len(p.source) {
		return p.source[p.at]
	}
	return 0
}

// space skips white space and comments.
func (p *ebnfParser) space() {
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

func (p *ebnfParser) name() string {
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
func (p *ebnfParser) define() bool {
	for _, sign := range []string{"::=", "="} {
		if strings.HasPrefix(p.source[p.at:], sign) {
			p.at += len(sign)
			p.space()
			return true
		}
	}
	return false
}

func (p *ebnfParser) alternatives() *expr {
	if p.depth++; p.depth > limits.GrammarNesting {
		p.fail(errLimit, "groups are nested more than %d levels deep", limits.GrammarNesting)
		return noExpr
	}
	defer func() { p.depth-- }()
	parts := []*expr{p.sequence()}
	for p.err == nil && p.peek() == '|' {
		p.at++
		p.space()
		parts = append(parts, p.sequence())
	}
	return altExpr(parts...)
}

// sequence parses up to one of | ) ; or the end, or the name of the next rule.
func (p *ebnfParser) sequence() *expr {
	var parts []*expr
	for p.err == nil {
		if p.err = p.ctx.Err(); p.err != nil {
			break
		}
		var e *expr
		switch c := p.peek(); c {
		case '"', '\'':
			e = p.literal(c)
		case '[':
			e = p.class()
		case '.':
			p.at++
			e = utf8Expr(runeSet{'\n', '\n'}.not())
		case '(':
			p.at++
			p.space()
			e = p.alternatives()
			if p.err == nil && p.peek() != ')' {
				p.fail(errInvalid, "a group has no closing )")
			}
			p.at++
		case '%':
			e = p.schema()
		case 0, '|', ')', ';':
			return seqExpr(parts...)
		default:
			from := p.at
			name := p.name()
			if name == "" {
				r, _ := utf8.DecodeRuneInString(p.source[p.at:])
				p.fail(errInvalid, "unexpected %q", r)
				return noExpr
			}
			next := p.at
			if p.define() {
				p.at = from
				return seqExpr(parts...)
			}
			p.at = next
			if _, ok := p.used[name]; !ok {
				p.used[name] = from
			}
			e = callExpr(p.rule(name))
		}
		p.space()
		parts = append(parts, p.repeated(e))
	}
	return noExpr
}

// schema parses %json and the schema after it.
func (p *ebnfParser) schema() *expr {
	const sign = "%json"
	if !strings.HasPrefix(p.source[p.at:], sign) {
		p.fail(errInvalid, "expected %s and a JSON schema", sign)
		return noExpr
	}
	p.at += len(sign)
	e, length, err := p.schemas.compile(p.ctx, p.source[p.at:])
	switch {
	case err != nil:
		p.fail(err, "after %s", sign)
		return noExpr
	case e.none():
		p.fail(errInvalid, "no value satisfies the schema")
	}
	p.at += length
	return e
}

func (p *ebnfParser) repeated(e *expr) *expr {
	for n := 0; p.err == nil; n++ {
		if n > limits.GrammarNesting {
			p.fail(errLimit, "more than %d nested repetitions", limits.GrammarNesting)
			break
		}
		switch p.peek() {
		case '?':
			e = optExpr(e)
		case '*':
			e = repeatExpr(e, 0, -1)
		case '+':
			e = repeatExpr(e, 1, -1)
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
func (p *ebnfParser) counted(e *expr) *expr {
	const longest = 64
	length := strings.IndexByte(p.source[p.at:min(len(p.source), p.at+longest)], '}')
	if length < 0 {
		p.fail(errInvalid, "a repetition has no closing }")
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
		p.fail(errInvalid, "{%s} is not a valid repetition count", text)
		return e
	}
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		p.fail(errLimit, "repetition count {%s}; at most %d", text, limits.GrammarRepeat)
		return e
	}
	p.at += length
	return repeatExpr(e, int(least), int(most))
}
