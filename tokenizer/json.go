package tokenizer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
)

const maxID = math.MaxInt32 - 1

// jsonReader parses RFC 8259 JSON in one pass and tracks its position: files have tens of megabytes, and an error must
// name the part and the offset. encoding/json would also replace invalid UTF-8 and lone surrogates, which could make
// two tokens equal.
type jsonReader struct {
	file  string
	data  []byte
	pos   int
	path  []string
	buf   []byte // of the last string with escapes
	nodes int
	depth int
}

func newJSONReader(file string, data []byte) (*jsonReader, error) {
	r := &jsonReader{file: file, data: data}
	if len(data) == 0 {
		return nil, r.fail("the file is empty")
	}
	if len(data) >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf {
		return nil, r.fail("the file starts with a byte order mark; save it as UTF-8 without one")
	}
	return r, nil
}

// fail returns ErrInvalid at the current position.
func (r *jsonReader) fail(format string, args ...any) error { return r.failAt(r.pos, format, args...) }

func (r *jsonReader) failAt(pos int, format string, args ...any) error {
	part := ""
	for i, p := range r.path {
		if i > 0 && p[0] != '[' {
			part += "."
		}
		part += p
	}
	if part != "" {
		part += ": "
	}
	return failure(ErrInvalid, "%s: %soffset %d: %s", r.file, part, pos, fmt.Sprintf(format, args...))
}

func (r *jsonReader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *jsonReader) peek() byte {
	r.space()
	if r.pos == len(r.data) {
		return 0
	}
	return r.data[r.pos]
}

func (r *jsonReader) unexpected(want string) error {
	if r.pos >= len(r.data) {
		return r.fail("unexpected end of file; expected %s", want)
	}
	c, n := utf8.DecodeRune(r.data[r.pos:])
	if c == utf8.RuneError && n <= 1 {
		return r.fail("byte 0x%02x is not valid UTF-8", r.data[r.pos])
	}
	return r.fail("unexpected %q; expected %s", c, want)
}

func (r *jsonReader) enter() error {
	if r.depth++; r.depth > limits.TokenizerNesting {
		return r.fail("nested more than %d levels deep", limits.TokenizerNesting)
	}
	return nil
}

// object calls member at the value of each key; member must consume the value. key is only valid until member reads on.
func (r *jsonReader) object(member func(key []byte) error) error {
	if r.peek() != '{' {
		return r.unexpected("an object")
	}
	if err := r.enter(); err != nil {
		return err
	}
	r.pos++
	if r.peek() == '}' {
		r.pos++
		r.depth--
		return nil
	}
	for {
		if r.peek() != '"' {
			return r.unexpected("a key")
		}
		key, err := r.str()
		if err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.unexpected("a colon")
		}
		r.pos++
		if err := member(key); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.pos++
		case '}':
			r.pos++
			r.depth--
			return nil
		default:
			return r.unexpected("a comma or the end of the object")
		}
	}
}

// array calls element at each element, which element must consume.
func (r *jsonReader) array(element func(i int) error) error {
	if r.peek() != '[' {
		return r.unexpected("an array")
	}
	if err := r.enter(); err != nil {
		return err
	}
	r.pos++
	if r.peek() == ']' {
		r.pos++
		r.depth--
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.pos++
		case ']':
			r.pos++
			r.depth--
			return nil
		default:
			return r.unexpected("a comma or the end of the array")
		}
	}
}

// within runs f with part appended to the path.
func (r *jsonReader) within(part string, f func() error) error {
	r.path = append(r.path, plain(part))
	err := f()
	r.path = r.path[:len(r.path)-1]
	return err
}

// str parses a string. The bytes are valid UTF-8 and only valid until the next call.
func (r *jsonReader) str() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.unexpected("a string")
	}
	start := r.pos + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			s := r.data[start:i]
			if err := r.valid(s, start); err != nil {
				return nil, err
			}
			r.pos = i + 1
			return s, nil
		case c == '\\':
			return r.escaped(start, i)
		case c < 0x20:
			return nil, r.failAt(i, "control character 0x%02x in a string", c)
		}
	}
	return nil, r.failAt(len(r.data), "unexpected end of file in a string")
}

func (r *jsonReader) valid(s []byte, at int) error {
	if utf8.Valid(s) {
		return nil
	}
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRune(s[i:])
		if c == utf8.RuneError && n == 1 {
			return r.failAt(at+i, "byte 0x%02x is not valid UTF-8", s[i])
		}
		i += n
	}
	return nil
}

// escaped parses the rest of a string from its first backslash on.
func (r *jsonReader) escaped(start, i int) ([]byte, error) {
	if err := r.valid(r.data[start:i], start); err != nil {
		return nil, err
	}
	b := append(r.buf[:0], r.data[start:i]...)
	for i < len(r.data) {
		c := r.data[i]
		switch {
		case c == '"':
			r.buf = b
			r.pos = i + 1
			return b, nil
		case c < 0x20:
			return nil, r.failAt(i, "control character 0x%02x in a string", c)
		case c < utf8.RuneSelf && c != '\\':
			b = append(b, c)
			i++
		case c != '\\':
			v, n := utf8.DecodeRune(r.data[i:])
			if v == utf8.RuneError && n == 1 {
				return nil, r.failAt(i, "byte 0x%02x is not valid UTF-8", c)
			}
			b = append(b, r.data[i:i+n]...)
			i += n
		case i+1 == len(r.data):
			i++
		default:
			if v := strings.IndexByte(`"\/bfnrt`, r.data[i+1]); v >= 0 {
				b = append(b, "\"\\/\b\f\n\r\t"[v])
				i += 2
				continue
			}
			v, n, ok := unicodeEscape(r.data[i:])
			if !ok {
				return nil, r.failAt(i, "invalid escape in a string")
			}
			b = utf8.AppendRune(b, v)
			i += n
		}
	}
	return nil, r.failAt(len(r.data), "unexpected end of file in a string")
}

// unicodeEscape decodes \uXXXX or a surrogate pair of them. It returns false for a lone surrogate.
func unicodeEscape(s []byte) (rune, int, bool) {
	unit := func(at int) rune {
		if len(s) < at+6 || s[at] != '\\' || s[at+1] != 'u' {
			return -1
		}
		v, err := strconv.ParseUint(string(s[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(v)
	}
	v := unit(0)
	if v < 0 {
		return 0, 0, false
	}
	if !utf16.IsSurrogate(v) {
		return v, 6, true
	}
	if v = utf16.DecodeRune(v, unit(6)); v == utf8.RuneError {
		return 0, 0, false
	}
	return v, 12, true
}

// number returns the text of a number.
func (r *jsonReader) number() (string, error) {
	r.space()
	start := r.pos
	digits := func() bool {
		at := r.pos
		for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
			r.pos++
		}
		return r.pos > at
	}
	is := func(set string) bool {
		if r.pos < len(r.data) && strings.IndexByte(set, r.data[r.pos]) >= 0 {
			r.pos++
			return true
		}
		return false
	}
	is("-")
	if !is("0") && !digits() {
		return "", r.unexpected("a value")
	}
	if is(".") && !digits() {
		return "", r.unexpected("a digit")
	}
	if is("eE") {
		is("+-")
		if !digits() {
			return "", r.unexpected("a digit")
		}
	}
	return string(r.data[start:r.pos]), nil
}

// id parses a token id.
func (r *jsonReader) id() (int32, error) {
	at := r.pos
	text, err := r.number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > maxID {
		return 0, r.failAt(at, "id %s is out of range: ids are integers from 0 to %d", text, maxID)
	}
	return int32(v), nil
}

func (r *jsonReader) literal(text string) error {
	if len(r.data)-r.pos < len(text) || string(r.data[r.pos:r.pos+len(text)]) != text {
		return r.unexpected("a value")
	}
	r.pos += len(text)
	return nil
}

// skip skips any value.
func (r *jsonReader) skip() error {
	switch r.peek() {
	case '{':
		return r.object(func([]byte) error { return r.skip() })
	case '[':
		return r.array(func(int) error { return r.skip() })
	case '"':
		_, err := r.str()
		return err
	case 't':
		return r.literal("true")
	case 'f':
		return r.literal("false")
	case 'n':
		return r.literal("null")
	}
	_, err := r.number()
	return err
}

// end checks that only white space is left.
func (r *jsonReader) end() error {
	if r.peek(); r.pos < len(r.data) {
		return r.unexpected("the end of the file")
	}
	return nil
}
