package ast

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// digits returns the length of a run of digits, which single underscores may separate.
func digits(s string, ok func(byte) bool) int {
	i := 0
	for i < len(s) {
		switch {
		case ok(s[i]):
			i++
		case s[i] == '_' && i > 0 && i+1 < len(s) && ok(s[i+1]):
			i++
		default:
			return i
		}
	}
	return i
}

// number reads an integer or a float. A float cannot follow a dot: x.0.1 is two subscripts.
func (l *lexer) number() error {
	s := l.rest()
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		n := digits(s, value.IsDigit)
		float := false
		if n < len(s) && s[n] == '.' {
			if m := digits(s[n+1:], value.IsDigit); m > 0 {
				n, float = n+1+m, true
			}
		}
		if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
			e := n + 1
			if e < len(s) && (s[e] == '+' || s[e] == '-') {
				e++
			}
			if m := digits(s[e:], value.IsDigit); m > 0 {
				n, float = e+m, true
			}
		}
		if float {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(s[:n], "_", ""), 64) // out of range: inf, as in Python
			l.emit(token{kind: tokFloat, line: l.line, value: f})
			l.advance(n)
			return nil
		}
	}
	n := intLiteral(s)
	b, ok := new(big.Int).SetString(strings.ReplaceAll(s[:n], "_", ""), 0)
	if !ok {
		return value.SyntaxError(l.line, "invalid number %q", s[:n])
	}
	l.emit(token{kind: tokInt, line: l.line, value: value.NormInt(b)})
	l.advance(n)
	return nil
}

func intLiteral(s string) int {
	if s[0] != '0' {
		return digits(s, value.IsDigit)
	}
	if len(s) > 2 {
		var ok func(byte) bool
		switch s[1] | 0x20 {
		case 'b':
			ok = func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			ok = func(c byte) bool { return c >= '0' && c <= '7' }
		case 'x':
			ok = func(c byte) bool { return value.IsDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
		}
		if ok != nil {
			at := 2
			if s[2] == '_' {
				at++
			}
			if n := digits(s[at:], ok); n > 0 {
				return at + n
			}
		}
	}
	return digits(s, func(c byte) bool { return c == '0' })
}

// str reads a string literal.
func (l *lexer) str() error {
	s := l.rest()
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			text, err := unescape(s[1:i])
			if err != nil {
				return value.SyntaxError(l.line, "%v", err)
			}
			l.emit(token{kind: tokString, line: l.line, text: text})
			l.advance(i + 1)
			return nil
		}
	}
	return value.SyntaxError(l.line, "unexpected char '%c'", s[0])
}
