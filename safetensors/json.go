package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth limits the nesting of skipped values.
const maxDepth = 32

// jsonReader is a streaming parser of RFC 8259 JSON. It replaces encoding/json, which silently replaces lone
// surrogates, so that two names can become one, and builds values before they can be rejected. jsonReader rejects an
// invalid construct where it occurs. Only skip recurses, up to maxDepth.
type jsonReader struct {
	data []byte // valid UTF-8
	pos  int
	kind error // wrapped by syntax errors
}

// newJSONReader checks once that data is valid UTF-8, for all strings in it.
func newJSONReader(data []byte, kind error) (*jsonReader, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", kind)
	}
	return &jsonReader{data: data, kind: kind}, nil
}

func (r *jsonReader) fail(format string, args ...any) error {
	return fmt.Errorf("%w: JSON byte %d: %s", r.kind, r.pos, fmt.Sprintf(format, args...))
}

// peek returns the next byte that is not white space, or 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// found describes the next character for a message.
func (r *jsonReader) found() string {
	if r.peek(); r.pos == len(r.data) {
		return "the end"
	}
	c, _ := utf8.DecodeRune(r.data[r.pos:])
	return strconv.QuoteRune(c)
}

func (r *jsonReader) expect(c byte) error {
	if r.peek() != c || r.pos == len(r.data) {
		return r.fail("want %q, found %s", c, r.found())
	}
	r.pos++
	return nil
}

// end checks that only white space remains.
func (r *jsonReader) end() error {
	if r.peek(); r.pos != len(r.data) {
		return r.fail("want the end, found %s", r.found())
	}
	return nil
}

// object calls member for each key, with the reader positioned at the value. It does not detect duplicate keys; the
// caller does.
func (r *jsonReader) object(member func(key string) error) error {
	return r.list('{', '}', func() error {
		key, err := r.text()
		if err != nil {
			return err
		}
		if err := r.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// array calls element for each element, with the reader positioned at it.
func (r *jsonReader) array(element func() error) error {
	return r.list('[', ']', element)
}

func (r *jsonReader) list(start, stop byte, item func() error) error {
	if err := r.expect(start); err != nil {
		return err
	}
	if r.peek() == stop {
		r.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if r.peek() == stop {
			r.pos++
			return nil
		}
		if err := r.expect(','); err != nil {
			return err
		}
	}
}

// text parses a string.
func (r *jsonReader) text() (string, error) {
	if err := r.expect('"'); err != nil {
		return "", err
	}
	start := r.pos
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; {
		case c == '"':
			s := string(r.data[start:r.pos])
			r.pos++
			return s, nil
		case c == '\\':
			return r.escaped(start)
		case c < 0x20:
			return "", r.fail("control character in a string")
		}
	}
	return "", r.fail("unterminated string")
}

// escaped parses the rest of a string from its first backslash on. The string began at start.
func (r *jsonReader) escaped(start int) (string, error) {
	var s strings.Builder
	s.Write(r.data[start:r.pos])
	for r.pos < len(r.data) {
		c := r.data[r.pos]
		switch {
		case c == '"':
			r.pos++
			return s.String(), nil
		case c < 0x20:
			return "", r.fail("control character in a string")
		case c != '\\':
			s.WriteByte(c)
			r.pos++
			continue
		}
		v, err := r.escape()
		if err != nil {
			return "", err
		}
		s.WriteRune(v)
	}
	return "", r.fail("unterminated string")
}

// escape parses an escape sequence. A surrogate pair counts as one sequence.
func (r *jsonReader) escape() (rune, error) {
	rest := r.data[r.pos+1:]
	if len(rest) == 0 {
		return 0, r.fail("unterminated string")
	}
	if i := strings.IndexByte(`"\/bfnrt`, rest[0]); i >= 0 {
		r.pos += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	v, ok := hex4(rest)
	if !ok {
		return 0, r.fail("invalid escape")
	}
	if !utf16.IsSurrogate(v) {
		r.pos += 6
		return v, nil
	}
	if len(rest) > 6 && rest[5] == '\\' {
		if low, ok := hex4(rest[6:]); ok {
			if v = utf16.DecodeRune(v, low); v != utf8.RuneError {
				r.pos += 12
				return v, nil
			}
		}
	}
	return 0, r.fail("lone surrogate in an escape")
}

// hex4 parses uXXXX.
func hex4(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	var v rune
	for _, c := range b[1:5] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// number reads the characters of a number without validating it.
func (r *jsonReader) number() string {
	r.peek()
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte("+-.0123456789eE", r.data[r.pos]) >= 0 {
		r.pos++
	}
	return string(r.data[start:r.pos])
}

// integer parses a non-negative integer without sign, fraction or exponent. A number in another form is an error that
// wraps kind.
func (r *jsonReader) integer(kind error) (int64, error) {
	s := r.number()
	if s == "" {
		return 0, r.fail("want a number, found %s", r.found())
	}
	if s[0] == '0' && len(s) > 1 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%w: %s is not a plain non-negative integer", kind, quote(s))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s does not fit 63 bits", kind, quote(s))
	}
	return n, nil
}

// skip skips a value of any type.
func (r *jsonReader) skip(depth int) error {
	if depth > maxDepth {
		return r.fail("more than %d levels of nesting", maxDepth)
	}
	switch r.peek() {
	case '{':
		return r.object(func(string) error { return r.skip(depth + 1) })
	case '[':
		return r.array(func() error { return r.skip(depth + 1) })
	case '"':
		_, err := r.text()
		return err
	case 't':
		return r.literal("true")
	case 'f':
		return r.literal("false")
	case 'n':
		return r.literal("null")
	}
	at := r.pos
	if s := r.number(); !json.Valid([]byte(s)) {
		r.pos = at
		return r.fail("want a value, found %s", r.found())
	}
	return nil
}

func (r *jsonReader) literal(word string) error {
	if !bytes.HasPrefix(r.data[r.pos:], []byte(word)) {
		return r.fail("want %s", word)
	}
	r.pos += len(word)
	return nil
}
