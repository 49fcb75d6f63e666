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
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
	"github.com/ingotml/ingot/tokenizer/fault"
)

const MaxID = math.MaxInt32 - 1

// Reader walks a file and tracks its position: files have tens of megabytes, and an error must name the part and the
// offset.
type Reader struct {
	jsonread.Reader
	Nodes int // values that Value has read

	file string
	path []string
}

func NewReader(file string, data []byte) (*Reader, error) {
	r := &Reader{file: file}
	r.Reader = jsonread.New(data, jsonread.Options{Nesting: limits.TokenizerNesting, Fail: r.fault})
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

// fault words a fault of the JSON.
func (r *Reader) fault(f jsonread.Fault) error {
	switch f.Problem {
	case jsonread.Control:
		return r.FailAt(f.Offset, "control character 0x%02x in a string", r.Text[f.Offset])
	case jsonread.Unterminated:
		return r.FailAt(len(r.Text), "unexpected end of file in a string")
	case jsonread.InvalidEscape, jsonread.LoneSurrogate:
		return r.FailAt(f.Offset, "invalid escape in a string")
	case jsonread.InvalidUTF8:
		return r.FailAt(f.Offset, "byte 0x%02x is not valid UTF-8", r.Text[f.Offset])
	case jsonread.TooDeep:
		return r.FailAt(f.Offset, "nested more than %d levels deep", limits.TokenizerNesting)
	}
	want := map[jsonread.Want]string{
		jsonread.Value: "a value", jsonread.Object: "an object", jsonread.Array: "an array", jsonread.String: "a string",
		jsonread.Key: "a key", jsonread.Colon: "a colon", jsonread.ObjectComma: "a comma or the end of the object",
		jsonread.ArrayComma: "a comma or the end of the array", jsonread.Digit: "a digit", jsonread.Word: "a value",
		jsonread.End: "the end of the file",
	}[f.Want]
	if f.Offset >= len(r.Text) {
		return r.FailAt(f.Offset, "unexpected end of file; expected %s", want)
	}
	c, n := utf8.DecodeRune(r.Text[f.Offset:])
	if c == utf8.RuneError && n <= 1 {
		return r.FailAt(f.Offset, "byte 0x%02x is not valid UTF-8", r.Text[f.Offset])
	}
	return r.FailAt(f.Offset, "unexpected %q; expected %s", c, want)
}

// Within runs f with part appended to the path.
func (r *Reader) Within(part string, f func() error) error {
	r.path = append(r.path, fault.Plain(part))
	err := f()
	r.path = r.path[:len(r.path)-1]
	return err
}

// ID parses a token id.
func (r *Reader) ID() (int32, error) {
	at := r.Pos
	text, err := r.Number()
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || v < 0 || v > MaxID {
		return 0, r.FailAt(at, "id %s is out of range: ids are integers from 0 to %d", text, MaxID)
	}
	return int32(v), nil
}
