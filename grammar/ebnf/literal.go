package ebnf

import (
	"strconv"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
)

func (p *parser) literal(quote byte) *expr.Expr {
	p.at++
	var b []byte
	for p.at < len(p.source) && p.source[p.at] != quote && p.source[p.at] != '\n' && p.err == nil {
		b = utf8.AppendRune(b, p.char())
	}
	if p.peek() != quote {
		p.fail(expr.ErrInvalid, "a literal has no closing %c", quote)
	}
	p.at++
	return expr.Text(string(b))
}

func (p *parser) class() *expr.Expr {
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
				p.fail(expr.ErrInvalid, "the character range %q-%q is empty", lo, hi)
			}
		}
		pairs = append(pairs, lo, hi)
	}
	if p.peek() != ']' {
		p.fail(expr.ErrInvalid, "a character class has no closing ]")
	}
	p.at++
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
		p.fail(expr.ErrInvalid, `the escape \%c needs %d hexadecimal digits of a valid character`, c, digits)
		return 0
	}
	p.fail(expr.ErrInvalid, `unknown escape \%c`, c)
	return 0
}
