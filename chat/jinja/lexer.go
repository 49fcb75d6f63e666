package jinja

import (
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind  tokenKind
	line  int
	text  string // of data, names, strings and operators
	value Value  // of numbers
}

func (t token) is(op string) bool  { return t.kind == tokOp && t.text == op }
func (t token) name(n string) bool { return t.kind == tokName && t.text == n }
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data"
	case tokVarBegin:
		return "begin of print statement"
	case tokVarEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokInt:
		return "integer"
	case tokFloat:
		return "float"
	}
	return t.text
}

// lexer splits a template into tokens like jinja2's lexer with trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos, line int
	out       []token
	lineStart bool // pos is at the start of a line
}

// lex returns the tokens of a template, ending with tokEOF.
func lex(source string) ([]token, error) {
	if !utf8.ValidString(source) {
		return nil, syntaxError(0, "the template is not UTF-8")
	}
	source = normalizeNewlines(source)
	source = strings.TrimSuffix(source, "\n") // keep_trailing_newline is off
	l := &lexer{src: source, line: 1, lineStart: true}
	if err := l.root(); err != nil {
		return nil, err
	}
	l.emit(token{kind: tokEOF, line: l.line})
	return l.out, nil
}

func normalizeNewlines(s string) string {
	if !strings.ContainsRune(s, '\r') {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (l *lexer) emit(t token) { l.out = append(l.out, t) }

func (l *lexer) advance(n int) {
	part := l.src[l.pos : l.pos+n]
	l.line += strings.Count(part, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = part[n-1] == '\n'
	}
}

func (l *lexer) rest() string { return l.src[l.pos:] }

func (l *lexer) skipSpace() {
	r := l.rest()
	l.advance(len(r) - len(strings.TrimLeftFunc(r, isSpace)))
}

// root reads template text and handles each tag.
func (l *lexer) root() error {
	for l.pos < len(l.src) {
		at := nextTag(l.rest())
		if at < 0 {
			l.emit(token{kind: tokData, line: l.line, text: l.rest()})
			l.advance(len(l.rest()))
			return nil
		}
		text, tag := l.src[l.pos:l.pos+at], l.src[l.pos+at:]
		sign := byte(0)
		if len(tag) > 2 && (tag[2] == '-' || tag[2] == '+') {
			sign = tag[2]
		}
		kept := l.stripBefore(text, sign, tag[1] == '{')
		if kept != "" {
			l.emit(token{kind: tokData, line: l.line, text: kept})
		}
		l.advance(len(text))
		n := 2
		if sign != 0 {
			n = 3
		}
		var err error
		switch tag[1] {
		case '#':
			l.advance(n)
			err = l.comment()
		case '{':
			l.emit(token{kind: tokVarBegin, line: l.line})
			l.advance(n)
			err = l.inside(tokVarEnd)
		default:
			if raw := rawBegin(tag); raw > 0 {
				l.advance(raw)
				err = l.raw()
				break
			}
			l.emit(token{kind: tokBlockBegin, line: l.line})
			l.advance(n)
			err = l.inside(tokBlockEnd)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nextTag returns the offset of the first "{{", "{%" or "{#"; -1 if there is none.
func nextTag(s string) int {
	for i := 0; ; {
		j := strings.IndexByte(s[i:], '{')
		if j < 0 || i+j+1 >= len(s) {
			return -1
		}
		i += j
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
		i++
	}
}

// stripBefore applies whitespace control to the text before a tag: "-" strips white space, lstrip_blocks strips blanks
// at the start of the line.
func (l *lexer) stripBefore(text string, sign byte, variable bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || variable {
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], isSpace) == "" {
		return text[:start]
	}
	return text
}

// rawBegin returns the length of a raw tag at the start of s, otherwise 0.
func rawBegin(s string) int {
	i := 2
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	i = skip(s, i)
	if !strings.HasPrefix(s[i:], "raw") {
		return 0
	}
	i = skip(s, i+3)
	if strings.HasPrefix(s[i:], "-%}") {
		return skip(s, i+3)
	}
	if strings.HasPrefix(s[i:], "%}") {
		return i + 2
	}
	return 0
}

func skip(s string, i int) int {
	return len(s) - len(strings.TrimLeftFunc(s[i:], isSpace))
}

// blockEnd returns the length of "%}" at the start of s, including its sign and the white space that it strips,
// otherwise 0.
func blockEnd(s, end string) int {
	switch {
	case strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(s, "-"+end):
		return skip(s, 1+len(end))
	case strings.HasPrefix(s, end+"\n"): // trim_blocks
		return len(end) + 1
	case strings.HasPrefix(s, end):
		return len(end)
	}
	return 0
}

func (l *lexer) comment() error {
	at := strings.Index(l.rest(), "#}")
	if at < 0 && l.rest() == "" {
		return nil // the reference accepts this at the end of the template
	}
	if at < 0 {
		return syntaxError(l.line, "missing end of comment tag")
	}
	if at > 0 && (l.rest()[at-1] == '-' || l.rest()[at-1] == '+') {
		at--
	}
	l.advance(at)
	l.advance(blockEnd(l.rest(), "#}"))
	return nil
}

// raw reads up to the endraw tag.
func (l *lexer) raw() error {
	for from := 0; ; {
		at := strings.Index(l.rest()[from:], "{%")
		if at < 0 && l.rest() == "" {
			return nil
		}
		if at < 0 {
			return syntaxError(l.line, "missing end of raw directive")
		}
		at += from
		s := l.rest()
		i, sign := at+2, byte(0)
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			sign = s[i]
			i++
		}
		if i = skip(s, i); strings.HasPrefix(s[i:], "endraw") {
			i = skip(s, i+len("endraw"))
			if n := blockEnd(s[i:], "%}"); n > 0 {
				if text := l.stripBefore(s[:at], sign, false); text != "" {
					l.emit(token{kind: tokData, line: l.line, text: text})
				}
				l.advance(i + n)
				return nil
			}
		}
		from = at + 2
	}
}

// operators, longest first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

var closing = map[string]string{"(": ")", "[": "]", "{": "}"}

// inside reads the tokens of a tag up to its end.
func (l *lexer) inside(end tokenKind) error {
	var open []string
	for {
		s := l.rest()
		if s == "" {
			return nil // the parser reports what is missing
		}
		if len(open) == 0 {
			n := 0
			if end == tokBlockEnd {
				n = blockEnd(s, "%}")
			} else if strings.HasPrefix(s, "-}}") {
				n = skip(s, 3)
			} else if strings.HasPrefix(s, "}}") {
				n = 2
			}
			if n > 0 {
				l.emit(token{kind: end, line: l.line})
				l.advance(n)
				return nil
			}
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case isSpace(r):
			l.skipSpace()
		case isDigit(s[0]):
			if err := l.number(); err != nil {
				return err
			}
		case isNameStart(r):
			n := size
			for n < len(s) {
				r, size := utf8.DecodeRuneInString(s[n:])
				if !isNamePart(r) {
					break
				}
				n += size
			}
			l.emit(token{kind: tokName, line: l.line, text: s[:n]})
			l.advance(n)
		case r == '\'' || r == '"':
			if err := l.str(); err != nil {
				return err
			}
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(s, o) {
					op = o
					break
				}
			}
			switch op {
			case "":
				return syntaxError(l.line, "unexpected char %q", r)
			case "(", "[", "{":
				open = append(open, closing[op])
			case ")", "]", "}":
				if len(open) == 0 {
					return syntaxError(l.line, "unexpected '%s'", op)
				}
				if want := open[len(open)-1]; want != op {
					return syntaxError(l.line, "unexpected '%s', expected '%s'", op, want)
				}
				open = open[:len(open)-1]
			}
			l.emit(token{kind: tokOp, line: l.line, text: op})
			l.advance(len(op))
		}
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) }
func isNamePart(r rune) bool {
	return isNameStart(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc)
}

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
		n := digits(s, isDigit)
		float := false
		if n < len(s) && s[n] == '.' {
			if m := digits(s[n+1:], isDigit); m > 0 {
				n, float = n+1+m, true
			}
		}
		if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
			e := n + 1
			if e < len(s) && (s[e] == '+' || s[e] == '-') {
				e++
			}
			if m := digits(s[e:], isDigit); m > 0 {
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
		return syntaxError(l.line, "invalid number %q", s[:n])
	}
	l.emit(token{kind: tokInt, line: l.line, value: normInt(b)})
	l.advance(n)
	return nil
}

func intLiteral(s string) int {
	if s[0] != '0' {
		return digits(s, isDigit)
	}
	if len(s) > 2 {
		var ok func(byte) bool
		switch s[1] | 0x20 {
		case 'b':
			ok = func(c byte) bool { return c == '0' || c == '1' }
		case 'o':
			ok = func(c byte) bool { return c >= '0' && c <= '7' }
		case 'x':
			ok = func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }
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
				return syntaxError(l.line, "%v", err)
			}
			l.emit(token{kind: tokString, line: l.line, text: text})
			l.advance(i + 1)
			return nil
		}
	}
	return syntaxError(l.line, "unexpected char '%c'", s[0])
}
