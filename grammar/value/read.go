package value

import (
	"slices"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
)

// Read parses one JSON value.
func Read(source []byte) (*Value, error) {
	if len(source) > limits.GrammarSource {
		return nil, expr.Errorf(expr.ErrLimit, "the schema has %d bytes; at most %d are allowed", len(source),
			limits.GrammarSource)
	}
	r := newReader(source)
	if !r.IsUTF8() {
		return nil, expr.Errorf(expr.ErrInvalid, "the schema is not UTF-8")
	}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	return v, r.End()
}

// ReadPrefix parses the JSON value that source begins with, and returns its length.
func ReadPrefix(source string) (v *Value, length int, err error) {
	r := newReader([]byte(source))
	v, err = r.value(0)
	return v, r.Pos, err
}

// reader builds a value. Large schemas have thousands of values, of which most texts are equal: values are allocated
// together, and equal texts once.
type reader struct {
	jsonread.Reader
	texts  map[string]string
	values []Value
}

func newReader(source []byte) *reader {
	// value finds what is too deep: it counts scalars too.
	return &reader{texts: map[string]string{}, Reader: jsonread.New(source, jsonread.Options{
		Nesting: limits.GrammarNesting + 1, ReplaceSurrogates: true, Fail: faultError,
	})}
}

func faultError(f jsonread.Fault) error {
	switch {
	case f.Problem == jsonread.TooDeep:
		return expr.Errorf(expr.ErrLimit, "the schema is nested more than %d levels deep", limits.GrammarNesting)
	case f.Want == jsonread.End && f.Problem == jsonread.Unexpected:
		return expr.Errorf(expr.ErrInvalid, "unexpected data after the schema, at byte %d", f.Offset)
	}
	return expr.Errorf(expr.ErrInvalid, "the schema is not JSON: %v", &f)
}

// made returns a new value.
func (r *reader) made(v Value) *Value {
	if len(r.values) == cap(r.values) {
		r.values = make([]Value, 0, min(max(8, 2*cap(r.values)), 512))
	}
	r.values = append(r.values, v)
	return &r.values[len(r.values)-1]
}

// text returns b as a string.
func (r *reader) text(b []byte) string {
	s, ok := r.texts[string(b)]
	if !ok {
		s = string(b)
		r.texts[s] = s
	}
	return s
}

// value reads a value within depth others. It bounds their number itself: jsonread counts no scalars.
func (r *reader) value(depth int) (*Value, error) {
	if depth > limits.GrammarNesting {
		return nil, r.Fail(jsonread.Fault{Problem: jsonread.TooDeep, Offset: r.Pos})
	}
	switch r.Peek() {
	case '{':
		return r.object(depth + 1)
	case '[':
		v := r.made(Value{Kind: Array})
		return v, r.Array(func(int) error {
			item, err := r.value(depth + 1)
			v.Items = append(v.Items, item)
			return err
		})
	case '"':
		b, err := r.Str()
		return r.made(Value{Kind: String, Text: r.text(b)}), err
	case 't':
		return r.made(Value{Kind: Boolean, Truth: true}), r.Literal("true")
	case 'f':
		return r.made(Value{Kind: Boolean}), r.Literal("false")
	case 'n':
		return r.made(Value{Kind: Null}), r.Literal("null")
	}
	b, err := r.Number()
	return r.made(Value{Kind: AnyNumber, Text: r.text(b)}), err
}

func (r *reader) object(depth int) (*Value, error) {
	const fewKeys = 16 // up to these, a scan finds a key that is there twice; beyond, a map does
	v := r.made(Value{Kind: Object})
	var seen map[string]bool
	return v, r.Object(func(key []byte) error {
		k := r.text(key)
		if len(v.Keys) == fewKeys {
			seen = make(map[string]bool, 2*fewKeys)
			for _, k := range v.Keys {
				seen[k] = true
			}
		}
		if seen[k] || seen == nil && slices.Contains(v.Keys, k) {
			return expr.Errorf(expr.ErrInvalid, "the schema has the key %q twice in one object, at byte %d", k, r.Pos)
		}
		if v.Keys = append(v.Keys, k); seen != nil {
			seen[k] = true
		}
		item, err := r.value(depth)
		v.Items = append(v.Items, item)
		return err
	})
}
