package ebnf

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
)

// Operands are read from At on, behind their first character.

func (p *parser) peek() byte {
	if p.At < len(p.Source) {
		return p.Source[p.At]
	}
	return 0
}

func (p *parser) fail(kind error, format string, args ...any) { p.Fail(kind, p.At, format, args...) }

// literal reads a literal, which quote has begun.
func (p *parser) literal(quote byte) *expr.Expr {
	var b []byte
	for p.At < len(p.Source) && p.Source[p.At] != quote && p.Source[p.At] != '\n' && p.Err == nil {
		b = utf8.AppendRune(b, p.char())
	}
	if p.peek() != quote {
		p.fail(expr.ErrInvalid, "a literal has no closing %c", quote)
	}
	p.At++
	return expr.Text(string(b))
}

// class reads a class of characters.
func (p *parser) class() *expr.Expr {
	negated := p.peek() == '^'
	if negated {
		p.At++
	}
	var pairs []rune
	for p.At < len(p.Source) && p.Source[p.At] != ']' && p.Err == nil {
		lo := p.char()
		hi := lo
		if p.peek() == '-' && p.At+1 < len(p.Source) && p.Source[p.At+1] != ']' {
			p.At++
			if hi = p.char(); hi < lo {
				p.fail(expr.ErrInvalid, "the character range %q-%q is empty", lo, hi)
			}
		}
		pairs = append(pairs, lo, hi)
	}
	if p.peek() != ']' {
		p.fail(expr.ErrInvalid, "a character class has no closing ]")
	}
	p.At++
	set := expr.RuneSetOf(pairs)
	if negated {
		set = set.Not()
	}
	if len(set) == 0 {
		p.fail(expr.ErrInvalid, "a character class is empty")
	}
	return expr.UTF8(set)
}

// char parses one character or escape.
func (p *parser) char() rune {
	r, n := utf8.DecodeRuneInString(p.Source[p.At:])
	p.At += n
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.At++
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
		if p.At+digits <= len(p.Source) {
			v, err := strconv.ParseUint(p.Source[p.At:p.At+digits], 16, 32)
			if err == nil && v <= utf8.MaxRune && utf8.ValidRune(rune(v)) {
				p.At += digits
				return rune(v)
			}
		}
		p.fail(expr.ErrInvalid, `the escape \%c needs %d hexadecimal digits of a valid character`, c, digits)
		return 0
	}
	p.fail(expr.ErrInvalid, `unknown escape \%c`, c)
	return 0
}

// token reads a token terminal, as in llama.cpp's GBNF: <name>, <[id]>, or ! and one of them for all other tokens.
func (p *parser) token() *expr.Expr {
	negated := p.Source[p.At-1] == '!'
	if !negated {
		p.At--
	} else if p.peek() != '<' {
		p.fail(expr.ErrInvalid, "expected a token such as <think> or <[10]> after !")
		return expr.None
	}
	t, length, problem := expr.ParseTokens(p.Source[p.At:])
	if problem != "" {
		p.fail(expr.ErrInvalid, "%s", problem)
		return expr.None
	}
	p.At += length
	if negated {
		t = t.Complement()
	}
	return expr.Token(t)
}

// schema reads %json and the schema after it.
func (p *parser) schema() *expr.Expr {
	const sign = "json"
	if !strings.HasPrefix(p.Source[p.At:], sign) {
		p.fail(expr.ErrInvalid, "expected %%%s and a JSON schema", sign)
		return expr.None
	}
	p.At += len(sign)
	e, length, err := p.schemas.Compile(p.ctx, p.Source[p.At:])
	switch {
	case err != nil:
		p.fail(err, "after %%%s", sign)
		return expr.None
	case e.None():
		p.fail(expr.ErrInvalid, "no value satisfies the schema")
	}
	p.At += length
	return e
}

// Count reads {n}, {n,} or {n,m}.
func (p *parser) Count() (least, most int, ok bool) {
	if !p.Is("{") {
		return 0, 0, false
	}
	const longest = 64
	from := p.Next.At
	length := strings.IndexByte(p.Source[from:min(len(p.Source), from+longest)], '}')
	if length < 0 {
		p.Fail(expr.ErrInvalid, from, "a repetition has no closing }")
		return 0, 0, false
	}
	text := p.Source[from+1 : from+length]
	first, last, span := strings.Cut(text, ",")
	n, err := strconv.ParseUint(strings.TrimSpace(first), 10, 31)
	if least, most = int(n), int(n); span {
		if most = -1; strings.TrimSpace(last) != "" {
			m, bad := strconv.ParseUint(strings.TrimSpace(last), 10, 31)
			if bad != nil {
				err = bad
			}
			most = int(m)
		}
	}
	switch {
	case err != nil || most >= 0 && most < least:
		p.Fail(expr.ErrInvalid, from, "{%s} is not a valid repetition count", text)
	case least > limits.GrammarRepeat || most > limits.GrammarRepeat:
		p.Fail(expr.ErrLimit, from, "repetition count {%s}; at most %d", text, limits.GrammarRepeat)
	}
	p.At = from + length + 1
	p.Advance()
	return least, most, true
}
