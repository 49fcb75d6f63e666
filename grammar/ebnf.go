package grammar

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
)

// CompileEBNF makes the grammar of the rule named root, or of the first one where there is no root. Rules are
//
//	name ::= "literal" 'literal' [a-z] [^"] . name (group) a | b  x? x* x+ x{2} x{2,} x{2,5}
//
// each from its name to the next one's; # begins a comment. %json and a JSON schema stand for the values that the schema allows, as
// CompileSchema has them; its references are to places in itself. "=" may stand for "::=", and ";" may end a rule. Literals and
// classes have the escapes \n \r \t \\ \" \' \] \[ \- \^ \xHH \uHHHH and \UHHHHHHHH. Characters are whole ones of UTF-8; a dot
// is any but a newline. Rules may call themselves, but not before they have read something: ErrUnsupported, but for a rule that
// begins with itself directly, which is written as the repetition that it is.
// It ends early with the context's error.
func CompileEBNF(ctx context.Context, source string) (*Grammar, error) {
	if len(source) > limits.GrammarSource {
		return nil, failure(ErrLimit, "a grammar of %d bytes; at most %d", len(source), limits.GrammarSource)
	}
	if !utf8.ValidString(source) {
		return nil, failure(ErrInvalid, "the grammar is not UTF-8")
	}
	p := &ebnfParser{ctx: ctx, source: source, rules: map[string]*rule{}, defined: map[string]bool{}, used: map[string]int{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return newGrammar(ctx, callExpr(p.start))
}

type ebnfParser struct {
	ctx     context.Context
	source  string
	at      int
	depth   int
	rules   map[string]*rule
	defined map[string]bool
	used    map[string]int // where a rule is called first
	start   *rule
	json    *jsonRules // of all schemas; nil before the first
	work    int        // that they were
	err     error
}

func (p *ebnfParser) parse() error {
	p.space()
	for p.at < len(p.source) && p.err == nil {
		from := p.at
		name := p.name()
		if name == "" {
			p.fail(ErrInvalid, "want the name of a rule")
			break
		}
		if !p.define() {
			p.fail(ErrInvalid, "want ::= after the name %s", name)
			break
		}
		r := p.rule(name)
		if p.defined[name] {
			p.at = from
			p.fail(ErrInvalid, "rule %s is there twice", name)
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
		return failure(ErrInvalid, "the grammar has no rule")
	}
	for name, at := range p.used {
		if !p.defined[name] {
			p.at = at
			p.fail(ErrInvalid, "rule %s is not there", name)
		}
	}
	return p.err
}

// ruleBody reads the alternatives of a rule. Those that begin with the rule itself repeat after the others: a ::= a x | y is
// y x*.
func (p *ebnfParser) ruleBody(r *rule) {
	var begins, goesOn []*expr
	for {
		e := p.sequence()
		head := e
		if e.op == exprSeq && len(e.subs) > 0 {
			head = e.subs[0]
		}
		if head.op == exprCall && head.rule == r {
			if e.op == exprSeq {
				goesOn = append(goesOn, seqExpr(e.subs[1:]...))
			}
		} else {
			begins = append(begins, e)
		}
		if p.err != nil || p.peek() != '|' {
			break
		}
		p.at++
		p.space()
	}
	r.body = seqExpr(altExpr(begins...), repeatExpr(altExpr(goesOn...), 0, -1))
}

func (p *ebnfParser) rule(name string) *rule {
	r, ok := p.rules[name]
	if !ok {
		r = &rule{name: name, body: noExpr}
		p.rules[name] = r
	}
	return r
}

// fail keeps the first error, with the line it is in.
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

// space goes on to what is neither white space nor comment.
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

// define reads the sign of a definition if there is one.
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
		p.fail(ErrLimit, "groups in more than %d levels", limits.GrammarNesting)
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

// sequence reads up to what ends it: | ) ; the end, or the name of the next rule.
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
				p.fail(ErrInvalid, "a group has no )")
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
				p.fail(ErrInvalid, "%q is not expected", r)
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

// schema reads %json and a schema.
func (p *ebnfParser) schema() *expr {
	const sign = "%json"
	if !strings.HasPrefix(p.source[p.at:], sign) {
		p.fail(ErrInvalid, "want %s and a JSON schema", sign)
		return noExpr
	}
	p.at += len(sign)
	d := json.NewDecoder(strings.NewReader(p.source[p.at:]))
	d.UseNumber()
	v, err := readNext(d, 0)
	if err != nil {
		p.fail(err, "after %s", sign)
		return noExpr
	}
	if p.json == nil {
		p.json = newJSONRules()
	}
	c := &schemaCompiler{ctx: p.ctx, root: v, json: p.json, made: map[string]*made{}, once: map[string]*expr{}, work: p.work}
	e := c.compile(conjunction{{v, "#"}})
	switch p.work = c.work; {
	case c.err != nil:
		p.fail(c.err, "after %s", sign)
	case e.none():
		p.fail(ErrInvalid, "no value satisfies the schema")
	}
	p.at += int(d.InputOffset())
	return e
}

func (p *ebnfParser) repeated(e *expr) *expr {
	for n := 0; p.err == nil; n++ {
		if n > limits.GrammarNesting {
			p.fail(ErrLimit, "more than %d repetitions of repetitions", limits.GrammarNesting)
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

// counted reads {n}, {n,} or {n,m} up to its closing brace.
func (p *ebnfParser) counted(e *expr) *expr {
	const longest = 64
	length := strings.IndexByte(p.source[p.at:min(len(p.source), p.at+longest)], '}')
	if length < 0 {
		p.fail(ErrInvalid, "a repetition has no }")
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
		p.fail(ErrInvalid, "{%s} is no number of times", text)
		return e
	}
	if least > limits.GrammarRepeat || most > limits.GrammarRepeat {
		p.fail(ErrLimit, "{%s}: at most %d times", text, limits.GrammarRepeat)
		return e
	}
	p.at += length
	return repeatExpr(e, int(least), int(most))
}

func (p *ebnfParser) literal(quote byte) *expr {
	p.at++
	var b []byte
	for p.at < len(p.source) && p.source[p.at] != quote && p.source[p.at] != '\n' && p.err == nil {
		b = utf8.AppendRune(b, p.char())
	}
	if p.peek() != quote {
		p.fail(ErrInvalid, "a literal has no closing %c", quote)
	}
	p.at++
	return textExpr(string(b))
}

func (p *ebnfParser) class() *expr {
	p.at++
	negated := p.peek() == '^'
	if negated {
		p.at++
	}
	var pairs []rune
	for p.at < len(p.source) && p.source[p.at] != ']' && p.err == nil {
		lo := p.char()
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.source) && p.source[p.at+1] != ']' {
			p.at++
			if hi = p.char(); hi < lo {
				p.fail(ErrInvalid, "the range %q-%q is empty", lo, hi)
			}
		}
		pairs = append(pairs, lo, hi)
	}
	if p.peek() != ']' {
		p.fail(ErrInvalid, "a class has no ]")
	}
	p.at++
	set := tidy(pairs)
	if negated {
		set = set.not()
	}
	if len(set) == 0 {
		p.fail(ErrInvalid, "a class is empty")
	}
	return utf8Expr(set)
}

// char reads one character, which may be an escape.
func (p *ebnfParser) char() rune {
	r, n := utf8.DecodeRuneInString(p.source[p.at:])
	p.at += n
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.at++
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '\\', '"', '\'', ']', '[', '-', '^':
		return rune(c)
	case 'x', 'u', 'U':
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if p.at+digits <= len(p.source) {
			v, err := strconv.ParseUint(p.source[p.at:p.at+digits], 16, 32)
			if err == nil && v <= utf8.MaxRune && utf8.ValidRune(rune(v)) {
				p.at += digits
				return rune(v)
			}
		}
		p.fail(ErrInvalid, `the escape \%c needs %d digits of a character`, c, digits)
		return 0
	}
	p.fail(ErrInvalid, `the escape \%c is not known`, c)
	return 0
}
