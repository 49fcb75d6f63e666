package value

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
)

// DecodeJSON decodes JSON (RFC 8259) like Python's json: objects keep the order of their keys, a duplicate key keeps
// its first position and takes the last value, integers have arbitrary size, and NaN and Infinity are accepted. The
// error wraps ErrInput.
func DecodeJSON(data []byte) (Value, error) {
	d := &jsonDecoder{}
	d.Reader = jsonread.New(bytes.TrimPrefix(data, []byte("\ufeff")), jsonread.Options{
		Nesting:           limits.TemplateJSONNesting + 1, // the limit counts from the outermost value on
		ReplaceSurrogates: true,
		Fail:              d.fault,
	})
	if !d.IsUTF8() {
		return nil, fmt.Errorf("%w: the JSON is not UTF-8", ErrInput)
	}
	v, err := d.value()
	if err == nil {
		err = d.End()
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// DecodeVars decodes a JSON object with the variables of a template. The error wraps ErrInput.
func DecodeVars(data []byte) (*Dict, error) {
	v, err := DecodeJSON(data)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("%w: want a JSON object with the variables, not %s", ErrInput, TypeName(v))
	}
	return d, nil
}

type jsonDecoder struct{ jsonread.Reader }

func (d *jsonDecoder) failAt(offset int, format string, args ...any) error {
	before := string(d.Text[:min(offset, len(d.Text))])
	line := strings.Count(before, "\n") + 1
	column := RuneCount(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%w: JSON line %d column %d: %s", ErrInput, line, column, fmt.Sprintf(format, args...))
}

// fault words a fault of the JSON.
func (d *jsonDecoder) fault(f jsonread.Fault) error {
	switch f.Problem {
	case jsonread.Control:
		return d.failAt(f.Offset, "control character in a string")
	case jsonread.Unterminated:
		return d.failAt(f.Offset, "unterminated string")
	case jsonread.InvalidEscape:
		if d.Text[f.Offset+1] == 'u' {
			return d.failAt(f.Offset, "bad \\u escape")
		}
		return d.failAt(f.Offset, "bad escape")
	case jsonread.TooDeep:
		return d.failAt(f.Offset, "nested too deeply")
	}
	return d.failAt(f.Offset, "%s", map[jsonread.Want]string{
		jsonread.Value: "expected a value", jsonread.Key: "expected a key in double quotes", jsonread.Colon: "expected ':'",
		jsonread.ObjectComma: "expected ',' or '}'", jsonread.ArrayComma: "expected ',' or ']'",
		jsonread.End: "unexpected text after the value",
	}[f.Want])
}

// words are the literals, with Python's additions.
var words = []struct {
	word string
	v    Value
}{{"null", nil}, {"true", true}, {"false", false}, {"NaN", math.NaN()}, {"Infinity", math.Inf(1)},
	{"-Infinity", math.Inf(-1)}}

func (d *jsonDecoder) value() (Value, error) {
	switch d.Peek() {
	case '{':
		o := NewDict()
		return o, d.Object(func(key []byte) error {
			k := string(key)
			v, err := d.value()
			o.Put(k, v)
			return err
		})
	case '[':
		l := &List{}
		return l, d.Array(func(int) error {
			v, err := d.value()
			l.Items = append(l.Items, v)
			return err
		})
	case '"':
		s, err := d.Str()
		return string(s), err
	}
	for _, w := range words {
		if d.Take(w.word) {
			return w.v, nil
		}
	}
	return d.number()
}

func (d *jsonDecoder) number() (Value, error) {
	at := d.Pos
	text := d.LongestNumber()
	switch {
	case text == nil:
		return nil, d.Unexpected(jsonread.Value)
	case bytes.ContainsAny(text, ".eE"):
		f, _ := strconv.ParseFloat(string(text), 64)
		return f, nil
	case len(text) > MaxDigits:
		return nil, d.failAt(at, "integer of more than %d digits", MaxDigits)
	}
	if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return i, nil
	}
	b, _ := new(big.Int).SetString(string(text), 10)
	return NormInt(b), nil
}
