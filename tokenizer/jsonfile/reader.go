// Package jsonfile reads the JSON of a tokenizer's files.
//
// Contract: Reader walks a file of any size without building it; Node is a small part of it, with at most
// limits.TokenizerValues values. A Component is a part with a type. Errors name the file, the part and, for malformed
// JSON, the offset.
package jsonfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/tokenizer/fault"
)

const MaxID = math.MaxInt32 - 1

// Reader parses RFC 8259 JSON in one pass and tracks its position: files have tens of megabytes, and an error must
// name the part and the offset. encoding/json would also replace invalid UTF-8 and lone surrogates, which could make
// two tokens equal.
type Reader struct {
	file  string
	data  []byte
	Pos   int
	path  []string
	buf   []byte // of the last string with escapes
	Nodes int
	depth int
}

func NewReader(file string, data []byte) (*Reader, error) {
	r := &Reader{file: file, data: data}
	if len(data) == 0 {
		return nil, r.Fail("the file is empty")
	}
	if len(data) >= 3 && data[0] == 0xef && data[1] == 0xbb && data[2] == 0xbf {
		return nil, r.Fail("the file starts with a byte order mark; save it as UTF-8 without one")
	}
	return r, nil
}

// Fail returns ErrInvalid at the current position.
func (r *Reader) Fail(format string, args ...any) error { return r.FailAt(r.Pos, format, args...) }

func (r *Reader) FailAt(pos int, format string, args ...any) error {
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
	return fault.Errorf(fault.ErrInvalid, "%s: %soffset %d: %s", r.file, part, pos, fmt.Sprintf(format, args...))
}

func (r *Reader) space() {
	for r.Pos < len(r.data) {
		switch r.data[r.Pos] {
		case ' ', '\t', '\n', '\r':
			r.Pos++
		default:
			return
		}
	}
}

// Peek skips white space and returns the next byte, 0 at the end.
func (r *Reader) Peek() byte {
	r.space()
	if r.Pos == len(r.data) {
		return 0
	}
	return r.data[r.Pos]
}

func (r *Reader) unexpected(want string) error {
	if r.Pos >= len(r.data) {
		return r.Fail("unexpected end of file; expected %s", want)
	}
	c, n := utf8.DecodeRune(r.data[r.Pos:])
	if c == utf8.RuneError && n <= 1 {
		return r.Fail("byte 0x%02x is not valid UTF-8", r.data[r.Pos])
	}
	return r.Fail("unexpected %q; expected %s", c, want)
}

func (r *Reader) enter() error {
	if r.depth++; r.depth > limits.TokenizerNesting {
		return r.Fail("nested more than %d levels deep", limits.TokenizerNesting)
	}
	return nil
}

// Object calls member at the value of each key; member must consume the value. key is only valid until member reads on.
func (r *Reader) Object(member func(key []byte) error) error {
	if r.Peek() != '{' {
		return r.unexpected("an object")
	}
	if err := r.enter(); err != nil {
		return err
	}
	r.Pos++
	if r.Peek() == '}' {
		r.Pos++
		r.depth--
		return nil
	}
	for {
		if r.Peek() != '"' {
			return r.unexpected("a key")
		}
		key, err := r.Str()
		if err != nil {
			return err
		}
		if r.Peek() != ':' {
			return r.unexpected("a colon")
		}
		r.Pos++
		if err := member(key); err != nil {
			return err
		}
		switch r.Peek() {
		case ',':
			r.Pos++
		case '}':
			r.Pos++
			r.depth--
			return nil
		default:
			return r.unexpected("a comma or the end of the object")
		}
	}
}

// Array calls element at each element, which element must consume.
func (r *Reader) Array(element func(i int) error) error {
	if r.Peek() != '[' {
		return r.unexpected("an array")
	}
	if err := r.enter(); err != nil {
		return err
	}
	r.Pos++
	if r.Peek() == ']' {
		r.Pos++
		r.depth--
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		switch r.Peek() {
		case ',':
			r.Pos++
		case ']':
			r.Pos++
			r.depth--
			return nil
		default:
			return r.unexpected("a comma or the end of the array")
		}
	}
}

// Within runs f with part appended to the path.
func (r *Reader) Within(part string, f func() error) error {
	r.path = append(r.path, fault.Plain(part))
	err := f()
	r.path = r.path[:len(r.path)-1]
	return err
}

// Str parses a string. The bytes are valid UTF-8 and only valid until the next call.
func (r *Reader) Str() ([]byte, error) {
	if r.Peek() != '"' {
		return nil, r.unexpected("a string")
	}
	start := r.Pos + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			s := r.data[start:i]
			if err := r.valid(s, start); err != nil {
				return nil, err
			}
			r.Pos = i + 1
			return s, nil
		case c == '\\':
			return r.escaped(start, i)
		case c < 0x20:
			return nil, r.FailAt(i, "control character 0x%02x in a string", c)
		}
	}
	return nil, r.FailAt(len(r.data), "unexpected end of file in a string")
}

func (r *Reader) valid(s []byte, at int) error {
	if utf8.Valid(s) {
		return nil
	}
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRune(s[i:])
		if c == utf8.RuneError && n == 1 {
			return r.FailAt(at+i, "byte 0x%02x is not valid UTF-8", s[i])
		}
		i += n
	}
	return nil
}

// escaped parses the rest of a string from its first backslash on.
func (r *Reader) escaped(start, i int) ([]byte, error) {
	if err := r.valid(r.data[start:i], start); err != nil {
		return nil, err
	}
	b := append(r.buf[:0], r.data[start:i]...)
	for i < len(r.data) {
		c := r.data[i]
		switch {
		case c == '"':
			r.buf = b
			r.Pos = i + 1
			return b, nil
		case c < 0x20:
			return nil, r.FailAt(i, "control character 0x%02x in a string", c)
		case c < utf8.RuneSelf && c != '\\':
			b = append(b, c)
			i++
		case c != '\\':
			v, n := utf8.DecodeRune(r.data[i:])
			if v == utf8.RuneError && n == 1 {
				return nil, r.FailAt(i, "byte 0x%02x is not valid UTF-8", c)
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
				return nil, r.FailAt(i, "invalid escape in a string")
			}
			b = utf8.AppendRune(b, v)
			i += n
		}
	}
	return nil, r.FailAt(len(r.data), "unexpected end of file in a string")
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

// Number returns the text of a number.
func (r *Reader) Number() (string, error) {
	r.space()
	start := r.Pos
	digits := func() bool {
		at := r.Pos
		for r.Pos < len(r.data) && r.data[r.Pos] >= '0' && r.data[r.Pos] <= '9' {
			r.Pos++
		}
		return r.Pos > at
	}
	is := func(set string) bool {
		if r.Pos < len(r.data) && strings.IndexByte(set, r.data[r.Pos]) >= 0 {
			r.Pos++
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
	return string(r.data[start:r.Pos]), nil
}

// ID parses a token id.
func (r *Reader) ID() (int32, error) {
	at := r.Pos
	text, err := r.Number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > MaxID {
		return 0, r.FailAt(at, "id %s is out of range: ids are integers from 0 to %d", text, MaxID)
	}
	return int32(v), nil
}

func (r *Reader) Literal(text string) error {
	if len(r.data)-r.Pos < len(text) || string(r.data[r.Pos:r.Pos+len(text)]) != text {
		return r.unexpected("a value")
	}
	r.Pos += len(text)
	return nil
}

// Skip skips any value.
func (r *Reader) Skip() error {
	switch r.Peek() {
	case '{':
		return r.Object(func([]byte) error { return r.Skip() })
	case '[':
		return r.Array(func(int) error { return r.Skip() })
	case '"':
		_, err := r.Str()
		return err
	case 't':
		return r.Literal("true")
	case 'f':
		return r.Literal("false")
	case 'n':
		return r.Literal("null")
	}
	_, err := r.Number()
	return err
}

// End checks that only white space is left.
func (r *Reader) End() error {
	if r.Peek(); r.Pos < len(r.data) {
		return r.unexpected("the end of the file")
	}
	return nil
}
