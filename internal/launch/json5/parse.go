package json5

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

type kind int

const (
	object kind = iota
	array
	quoted
	bare // a number, true, false, null, or any other unquoted word
)

// node is a value and its position in the text.
type node struct {
	kind       kind
	start, end int
	members    []field // if an object
	elements   []*node // if an array
	text       string  // decoded, if quoted; verbatim, if bare
}

// field is a member of an object.
type field struct {
	key   string
	start int // offset of the key
	value *node
	comma int // offset of the comma that follows; -1 if there is none
}

// member returns the last member with a key, or nil. The last one wins if a key is repeated.
func (n *node) member(key string) *field {
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

func (n *node) value() any {
	switch n.kind {
	case object:
		m := map[string]any{}
		for _, f := range n.members {
			m[f.key] = f.value.value()
		}
		return m
	case array:
		list := []any{}
		for _, e := range n.elements {
			list = append(list, e.value())
		}
		return list
	case quoted:
		return n.text
	}
	switch n.text {
	case "null":
		return nil
	case "true", "false":
		return n.text == "true"
	}
	if json.Valid([]byte(n.text)) {
		return json.Number(n.text)
	}
	return n.text
}

// maxDepth is the maximum nesting depth.
const maxDepth = 200

type parser struct {
	s  string
	at int
}

func parse(b []byte) (n *node, err error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("%w: not UTF-8", ErrSyntax)
	}
	p := &parser{s: string(b)}
	if strings.HasPrefix(p.s, "\ufeff") {
		p.at = len("\ufeff")
	}
	if err = p.space(); err == nil {
		n, err = p.value(0)
	}
	if err == nil {
		err = p.space()
	}
	if err == nil && p.at < len(p.s) {
		err = p.errorf("unexpected text after the value")
	}
	return n, err
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrSyntax, 1+strings.Count(p.s[:p.at], "\n"), fmt.Sprintf(format, args...))
}

// next returns the byte at the current offset, or 0 at the end.
func (p *parser) next() byte {
	if p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

// space skips white space and comments.
func (p *parser) space() error {
	for p.at < len(p.s) {
		rest := p.s[p.at:]
		switch {
		case strings.HasPrefix(rest, "//"):
			if i := strings.IndexAny(rest, "\n\r"); i >= 0 {
				p.at += i
			} else {
				p.at = len(p.s)
			}
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest[2:], "*/")
			if i < 0 {
				return p.errorf("unterminated comment")
			}
			p.at += i + 4
		default:
			r, size := utf8.DecodeRuneInString(rest)
			if !strings.ContainsRune(" \t\n\r\v\f\u00a0\ufeff\u2028\u2029", r) {
				return nil
			}
			p.at += size
		}
	}
	return nil
}

func (p *parser) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, p.errorf("values are nested more than %d deep", maxDepth)
	}
	n := &node{start: p.at}
	var err error
	switch c := p.next(); c {
	case '{':
		err = p.object(n, depth)
	case '[':
		n.kind = array
		err = p.array(n, depth)
	case '"', '\'':
		n.kind = quoted
		n.text, err = p.str(c)
	default:
		n.kind = bare
		if n.text = p.word(); n.text == "" {
			err = p.errorf("missing value")
		}
	}
	n.end = p.at
	return n, err
}

func (p *parser) object(n *node, depth int) error {
	p.at++
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next() == '}' {
			p.at++
			return nil
		}
		f := field{start: p.at, comma: -1}
		var err error
		if c := p.next(); c == '"' || c == '\'' {
			f.key, err = p.str(c)
		} else if f.key = p.word(); f.key == "" {
			err = p.errorf("missing key")
		}
		if err == nil {
			err = p.space()
		}
		if err == nil && p.next() != ':' {
			err = p.errorf("missing colon after %q", f.key)
		}
		if err != nil {
			return err
		}
		p.at++
		if err = p.space(); err == nil {
			f.value, err = p.value(depth + 1)
		}
		if err == nil {
			err = p.space()
		}
		if err != nil {
			return err
		}
		if p.next() == ',' {
			f.comma = p.at
			p.at++
		} else if p.next() != '}' {
			return p.errorf("missing comma after %q", f.key)
		}
		n.members = append(n.members, f)
	}
}

func (p *parser) array(n *node, depth int) error {
	p.at++
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.next() == ']' {
			p.at++
			return nil
		}
		e, err := p.value(depth + 1)
		if err == nil {
			err = p.space()
		}
		if err != nil {
			return err
		}
		n.elements = append(n.elements, e)
		if p.next() == ',' {
			p.at++
		} else if p.next() != ']' {
			return p.errorf("missing comma in an array")
		}
	}
}

// word reads an unquoted word.
func (p *parser) word() string {
	rest := p.s[p.at:]
	end := strings.IndexAny(rest, " \t\n\r\v\f\u00a0\ufeff\u2028\u2029,:{}[]\"'/")
	if end < 0 {
		end = len(rest)
	}
	p.at += end
	return rest[:end]
}

// escapes are the single-character escapes.
var escapes = map[byte]string{'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '0': "\x00"}

func (p *parser) str(quote byte) (string, error) {
	var b strings.Builder
	for p.at++; ; {
		switch c := p.next(); {
		case p.at >= len(p.s) || c == '\n' || c == '\r':
			return "", p.errorf("unterminated string")
		case c == quote:
			p.at++
			return b.String(), nil
		case c != '\\':
			b.WriteByte(c)
			p.at++
		default:
			p.at++
			if err := p.escape(&b); err != nil {
				return "", err
			}
		}
	}
}

// escape decodes the escape sequence after a backslash.
func (p *parser) escape(b *strings.Builder) error {
	c := p.next()
	p.at++
	switch c {
	case 'x', 'u':
		r, err := p.hex(map[byte]int{'x': 2, 'u': 4}[c])
		if err != nil {
			return err
		}
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.at:], `\u`) {
			p.at += 2
			low, err := p.hex(4)
			if err != nil {
				return err
			}
			r = utf16.DecodeRune(r, low)
		}
		b.WriteRune(r)
	case '\r':
		if p.next() == '\n' {
			p.at++
		}
	case '\n': // a line continuation
	default:
		if s, ok := escapes[c]; ok {
			b.WriteString(s)
			return nil
		}
		p.at--
		if p.at >= len(p.s) {
			return p.errorf("unterminated string")
		}
		_, size := utf8.DecodeRuneInString(p.s[p.at:])
		b.WriteString(p.s[p.at : p.at+size])
		p.at += size
	}
	return nil
}

func (p *parser) hex(digits int) (rune, error) {
	if p.at+digits > len(p.s) {
		return 0, p.errorf("incomplete escape")
	}
	v, err := strconv.ParseUint(p.s[p.at:p.at+digits], 16, 32)
	if err != nil {
		return 0, p.errorf("invalid escape %q", p.s[p.at:p.at+digits])
	}
	p.at += digits
	return rune(v), nil
}
