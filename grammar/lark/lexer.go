package lark

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/syntax"
)

// The kinds of symbols, beside those of all languages.
const (
	newline  = iota + syntax.Own // one or more line breaks
	rule                         // a name in lower case
	terminal                     // a name in upper case
	text                         // "..." and its flags
	pattern                      // /.../ and its flags
	number
	token     // <...>
	directive // %name
	reference // @name
)

// operators have more than one character.
var operators = []string{"->", "..", "::"}

// Scan returns the next symbol. It stops before the value of %json and %regex, which the parser reads.
func (p *parser) Scan() syntax.Symbol {
	from := p.At
	switch line := p.Space(" \t\r\f\n", "#", "//"); {
	case line:
		return syntax.Symbol{Kind: newline, Text: "\n", At: from}
	case p.At == len(p.Source):
		return syntax.Symbol{Kind: syntax.End, At: p.At}
	}
	return p.scanWord()
}

func (p *parser) scanWord() syntax.Symbol {
	from := p.At
	rest := p.Source[from:]
	made := func(k syntax.Kind, length int) syntax.Symbol {
		p.At = from + length
		return syntax.Symbol{Kind: k, Text: rest[:length], At: from}
	}
	switch c := rest[0]; {
	case c == '"':
		return made(text, p.quoted(rest, '"', "i"))
	case c == '/':
		return made(pattern, p.quoted(rest, '/', "imslux"))
	case c == '<':
		_, length, problem := expr.ParseTokens(rest)
		if problem != "" {
			p.Fail(expr.ErrInvalid, from, "%s", problem)
			length = len(rest)
		}
		return made(token, length)
	case c == '%':
		return made(directive, 1+nameLength(rest[1:]))
	case c == '@':
		return made(reference, 1+nameLength(rest[1:]))
	case c >= '0' && c <= '9':
		n := 1
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '.' && n+1 < len(rest) && rest[n+1] != '.' &&
			!strings.Contains(rest[:n], ".")) {
			n++
		}
		return made(number, n)
	}
	if n := nameLength(rest); n > 0 {
		k := rule
		if name := strings.TrimLeft(rest[:n], "_"); name != "" && name[0] >= 'A' && name[0] <= 'Z' {
			k = terminal
		}
		return made(k, n)
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			return made(syntax.Operator, len(op))
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	return made(syntax.Operator, n)
}

// nameLength returns the length of the name that s begins with.
func nameLength(s string) int {
	n := syntax.NameLength(s)
	for n > 0 && s[n-1] == '-' { // the arrow of an alias
		n--
	}
	return n
}

// quoted returns the length of a literal and the flags after it.
func (p *parser) quoted(rest string, quote byte, flags string) int {
	n := 1
	for n < len(rest) && rest[n] != quote && rest[n] != '\n' {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) || rest[n] != quote {
		p.Fail(expr.ErrInvalid, p.At, "a literal has no closing %c", quote)
		return len(rest)
	}
	n++
	for n < len(rest) && strings.IndexByte(flags, rest[n]) >= 0 {
		n++
	}
	return n
}
