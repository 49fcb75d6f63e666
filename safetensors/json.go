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

// maxDepth bounds the nesting of values that are skipped.
const maxDepth = 32

// jsonReader reads RFC 8259 JSON front to back. The standard decoder is not used: it replaces lone surrogates
// silently (so two names can become one) and builds values before they can be refused. Here a wrong
// construct is refused where it stands, and nothing recurses but skip, which counts.
type jsonReader struct {
	data []byte // valid UTF-8
	pos  int
	kind error // what syntax errors wrap
}

// newJSONReader checks the encoding of data once for all strings in it.
func newJSONReader(data []byte, kind error) (*jsonReader, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: not UTF-8", kind)
	}
	return &jsonReader{data: data, kind: kind}, nil
}

func (r *jsonReader) fail(format string, args ...any) error {
	return fmt.Errorf("%w: JSON byte %d: %s", r.kind, r.pos, fmt.Sprintf(format, args...))
}

// peek returns the next byte that is not white space, 0 at the end.
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

// found describes the next byte for a message.
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

// end checks that only white space is left.
func (r *jsonReader) end() error {
	if r.peek(); r.pos != len(r.data) {
		return r.fail("want the end, found %s", r.found())
	}
	return nil
}

// object calls member for each key, with the reader in front of the value. Duplicates are the caller's to find.
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

// array calls element with the reader in front of each element.
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

// text reads a string.
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
	return "", r.fail("string without an end")
}

// escaped goes on with a string that began at start when its first backslash is met.
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
	return "", r.fail("string without an end")
}

// escape reads one escape sequence, a surrogate pair as one.
func (r *jsonReader) escape() (rune, error) {
	rest := r.data[r.pos+1:]
	if len(rest) == 0 {
		return 0, r.fail("string without an end")
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

// hex4 reads uXXXX.
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

// number reads the characters of a number without judging them.
func (r *jsonReader) number() string {
	r.peek()
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte("+-.0123456789eE", r.data[r.pos]) >= 0 {
		r.pos++
	}
	return string(r.data[start:r.pos])
}

// integer reads a number that is written as a non-negative integer: no sign, fraction or exponent. kind is
// what the error wraps when there is a number of another form.
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

// skip passes over one value of any type.
func (r *jsonReader) skip(depth int) error {
	if depth > maxDepth {
		return r.fail("nested more than %d deep", maxDepth)
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
