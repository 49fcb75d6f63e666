package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
)

// jsonReader reads headers and indexes. Its errors wrap kind. Duplicate keys are the caller's to find.
type jsonReader struct {
	jsonread.Reader
	kind error
	dims []int64 // of the last shape
}

// newJSONReader checks once that data is valid UTF-8, for all strings in it.
func newJSONReader(data []byte, kind error) (*jsonReader, error) {
	r := &jsonReader{kind: kind}
	// The limit counts from the value of a key on.
	r.Reader = jsonread.New(data, jsonread.Options{Nesting: limits.TensorIndexNesting + 2, Fail: r.fault})
	if !r.IsUTF8() {
		return nil, fmt.Errorf("%w: not UTF-8", kind)
	}
	return r, nil
}

func (r *jsonReader) failAt(offset int, format string, args ...any) error {
	return fmt.Errorf("%w: JSON byte %d: %s", r.kind, offset, fmt.Sprintf(format, args...))
}

// fault words a fault of the JSON.
func (r *jsonReader) fault(f jsonread.Fault) error {
	switch f.Problem {
	case jsonread.Control:
		return r.failAt(f.Offset, "control character in a string")
	case jsonread.Unterminated:
		return r.failAt(f.Offset, "unterminated string")
	case jsonread.InvalidEscape:
		return r.failAt(f.Offset, "invalid escape")
	case jsonread.LoneSurrogate:
		return r.failAt(f.Offset, "lone surrogate in an escape")
	case jsonread.TooDeep:
		return r.failAt(f.Offset, "more than %d levels of nesting", limits.TensorIndexNesting)
	}
	if f.Want == jsonread.Word {
		return r.failAt(f.Offset, "want %s", f.Word)
	}
	want := map[jsonread.Want]string{
		jsonread.Object: "'{'", jsonread.Array: "'['", jsonread.String: `'"'`, jsonread.Key: `'"'`, jsonread.Colon: "':'",
		jsonread.ObjectComma: "','", jsonread.ArrayComma: "','", jsonread.Value: "a value", jsonread.Digit: "a digit",
		jsonread.End: "the end",
	}[f.Want]
	return r.failAt(f.Offset, "want %s, found %s", want, jsonread.Found(r.Text, f.Offset))
}

// text parses a string.
func (r *jsonReader) text() (string, error) {
	s, err := r.Str()
	return string(s), err
}

// number reads the characters of a number without validating it.
func (r *jsonReader) number() []byte {
	r.Peek()
	start := r.Pos
	for r.Pos < len(r.Text) && strings.IndexByte("+-.0123456789eE", r.Text[r.Pos]) >= 0 {
		r.Pos++
	}
	return r.Text[start:r.Pos]
}

// integer parses a non-negative integer without sign, fraction or exponent. A number in another form is an error that
// wraps kind.
func (r *jsonReader) integer(kind error) (int64, error) {
	s := r.number()
	if len(s) == 0 {
		return 0, r.failAt(r.Pos, "want a number, found %s", jsonread.Found(r.Text, r.Pos))
	}
	if s[0] == '0' && len(s) > 1 || len(bytes.Trim(s, "0123456789")) > 0 {
		return 0, fmt.Errorf("%w: %s is not a plain non-negative integer", kind, quote(string(s)))
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s does not fit 63 bits", kind, quote(string(s)))
	}
	return n, nil
}

// skip skips a value of any type.
func (r *jsonReader) skip() error {
	switch c := r.Peek(); {
	case c == '{':
		return r.Object(func([]byte) error { return r.skip() })
	case c == '[':
		return r.Array(func(int) error { return r.skip() })
	case strings.IndexByte(`"tfn`, c) >= 0:
		return r.Skip()
	}
	at := r.Pos
	if !json.Valid(r.number()) {
		return r.failAt(at, "want a value, found %s", jsonread.Found(r.Text, at))
	}
	return nil
}
