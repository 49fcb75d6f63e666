package lark

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
)

// kind is the kind of a symbol of a grammar's source.
type kind uint8

const (
	end      kind = iota
	newline       // one or more line breaks
	rule          // a name in lower case
	terminal      // a name in upper case
	text          // "..." and its flags
	pattern       // /.../ and its flags
	number
	token     // <...>
	directive // %name
	reference // @name
	operator  // any other: a character, or one of operators
)

// symbol is a lexical element of a grammar's source.
type symbol struct {
	kind kind
	text string // as written
	at   int    // offset in the source
}

// operators have more than one character.
var operators = []string{"->", "..", "::"}

// scan splits a source into symbols. It stops before the value of %json and %regex, which the parser reads.
func (p *parser) scan() symbol {
	line := false
	from := p.at
	for p.at < len(p.source) {
		switch c := p.source[p.at]; {
		case c == '\n':
			line = true
			p.at++
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			p.at++
		case c == '#' || strings.HasPrefix(p.source[p.at:], "//"):
			if n := strings.IndexByte(p.source[p.at:], '\n'); n >= 0 {
				p.at += n
			} else {
				p.at = len(p.source)
			}
		default:
			if line {
				return symbol{newline, "\n", from}
			}
			return p.scanWord()
		}
	}
	if line {
		return symbol{newline, "\n", from}
	}
	return symbol{end, "", p.at}
}

func (p *parser) scanWord() symbol {
	from := p.at
	rest := p.source[from:]
	made := func(k kind, length int) symbol {
		p.at = from + length
		return symbol{k, rest[:length], from}
	}
	switch c := rest[0]; {
	case c == '"':
		return made(text, p.quoted(rest, '"', "i"))
	case c == '/':
		return made(pattern, p.quoted(rest, '/', "imslux"))
	case c == '<':
		_, length, problem := expr.ParseTokens(rest)
		if problem != "" {
			p.fail(expr.ErrInvalid, from, "%s", problem)
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
			return made(operator, len(op))
		}
	}
	_, n := utf8.DecodeRuneInString(rest)
	return made(operator, n)
}

func nameLength(s string) (n int) {
	for n < len(s) {
		c := s[n]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (n == 0 || (c < '0' || c > '9') && c != '-') {
			break
		}
		n++
	}
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
		p.fail(expr.ErrInvalid, p.at, "a literal has no closing %c", quote)
		return len(rest)
	}
	n++
	for n < len(rest) && strings.IndexByte(flags, rest[n]) >= 0 {
		n++
	}
	return n
}
