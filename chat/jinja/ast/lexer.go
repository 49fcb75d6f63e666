package ast

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
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
	text  string      // of data, names, strings and operators
	value value.Value // of numbers
}

func (t token) is(op string) bool { return t.kind == tokOp && t.text == op }

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
		return nil, value.SyntaxError(0, "the template is not UTF-8")
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
	l.advance(len(r) - len(strings.TrimLeftFunc(r, value.IsSpace)))
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
		return strings.TrimRightFunc(text, value.IsSpace)
	}
	if sign == '+' || variable {
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], value.IsSpace) == "" {
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
	return len(s) - len(strings.TrimLeftFunc(s[i:], value.IsSpace))
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
		return value.SyntaxError(l.line, "missing end of comment tag")
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
			return value.SyntaxError(l.line, "missing end of raw directive")
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
		case value.IsSpace(r):
			l.skipSpace()
		case value.IsDigit(s[0]):
			if err := l.number(); err != nil {
				return err
			}
		case value.IsNameStart(r):
			n := size
			for n < len(s) {
				r, size := utf8.DecodeRuneInString(s[n:])
				if !value.IsNamePart(r) {
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
				return value.SyntaxError(l.line, "unexpected char %q", r)
			case "(", "[", "{":
				open = append(open, closing[op])
			case ")", "]", "}":
				if len(open) == 0 {
					return value.SyntaxError(l.line, "unexpected '%s'", op)
				}
				if want := open[len(open)-1]; want != op {
					return value.SyntaxError(l.line, "unexpected '%s', expected '%s'", op, want)
				}
				open = open[:len(open)-1]
			}
			l.emit(token{kind: tokOp, line: l.line, text: op})
			l.advance(len(op))
		}
	}
}
