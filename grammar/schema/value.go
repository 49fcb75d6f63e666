package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/grammar/expr"
	"github.com/ingotml/ingot/grammar/jsontext"
	"github.com/ingotml/ingot/limits"
)

// value is a JSON value. Objects keep the order of their members.
type value struct {
	kind  typeSet // a single type; numbers are anyNumber
	text  string  // of a string; of a number, its literal
	truth bool
	items []*value
	keys  []string // of an object, parallel to items
}

// get returns the value of a key, or nil.
func (v *value) get(key string) *value {
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
		}
	}
	return nil
}

// readValue parses one JSON value.
func readValue(source []byte) (*value, error) {
	if len(source) > limits.GrammarSource {
		return nil, expr.Errorf(expr.ErrLimit, "the schema has %d bytes; at most %d are allowed", len(source),
			limits.GrammarSource)
	}
	if !utf8.Valid(source) {
		return nil, expr.Errorf(expr.ErrInvalid, "the schema is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(source))
	d.UseNumber()
	v, err := readNext(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = expr.Errorf(expr.ErrInvalid, "unexpected data after the schema, at byte %d", d.InputOffset())
		}
	}
	return v, err
}

func readNext(d *json.Decoder, depth int) (*value, error) {
	if depth > limits.GrammarNesting {
		return nil, expr.Errorf(expr.ErrLimit, "the schema is nested more than %d levels deep", limits.GrammarNesting)
	}
	t, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, expr.Errorf(expr.ErrInvalid, "the schema is not JSON: byte %d: %v", d.InputOffset(), err)
	}
	switch t := t.(type) {
	case nil:
		return &value{kind: typeNull}, nil
	case bool:
		return &value{kind: typeBoolean, truth: t}, nil
	case json.Number:
		return &value{kind: anyNumber, text: t.String()}, nil
	case string:
		return &value{kind: typeString, text: t}, nil
	}
	v := &value{kind: typeArray}
	object := t == json.Delim('{')
	seen := map[string]bool{}
	if object {
		v.kind = typeObject
	}
	for d.More() {
		if object {
			k, err := readNext(d, depth)
			if err != nil {
				return nil, err
			}
			if seen[k.text] {
				const format = "the schema has the key %q twice in one object, at byte %d"
				return nil, expr.Errorf(expr.ErrInvalid, format, k.text, d.InputOffset())
			}
			seen[k.text] = true
			v.keys = append(v.keys, k.text)
		}
		item, err := readNext(d, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	if _, err := d.Token(); err != nil {
		return nil, expr.Errorf(expr.ErrInvalid, "the schema is not JSON: byte %d: %v", d.InputOffset(), err)
	}
	return v, nil
}

// dump appends v as json.dumps writes it; ascii is its ensure_ascii option, which is Python's default.
func (v *value) dump(b []byte, ascii bool) []byte {
	switch v.kind {
	case typeNull:
		return append(b, "null"...)
	case typeBoolean:
		return strconv.AppendBool(b, v.truth)
	case anyNumber:
		return append(b, v.text...)
	case typeString:
		return jsontext.AppendString(b, v.text, ascii)
	case typeArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = item.dump(b, ascii)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for i, item := range v.items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = jsontext.AppendString(b, v.keys[i], ascii)
		b = append(b, ": "...)
		b = item.dump(b, ascii)
	}
	return append(b, '}')
}

// mentions reports whether an object in v has a key.
func (v *value) mentions(key string) bool {
	return slices.Contains(v.keys, key) || slices.ContainsFunc(v.items, func(i *value) bool { return i.mentions(key) })
}

// rational returns the value of a number, or false if its digits could exhaust memory.
func (v *value) rational() (*big.Rat, bool) {
	if v.kind != anyNumber || len(v.text) > 400 {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(v.text), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 400 || n < -400 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(v.text)
}

// equal is JSON equality: numbers by value, objects in any order.
func (v *value) equal(o *value) bool {
	if v.kind != o.kind || v.truth != o.truth || len(v.items) != len(o.items) {
		return false
	}
	switch v.kind {
	case anyNumber:
		a, ok := v.rational()
		b, ok2 := o.rational()
		if ok && ok2 {
			return a.Cmp(b) == 0
		}
		return v.text == o.text
	case typeString:
		return v.text == o.text
	case typeObject:
		for i, k := range v.keys {
			if other := o.get(k); other == nil || !v.items[i].equal(other) {
				return false
			}
		}
		return true
	}
	for i, item := range v.items {
		if !item.equal(o.items[i]) {
			return false
		}
	}
	return true
}

// constants looks up values: strings in a map, all others by a linear search.
type constants struct {
	texts  map[string]bool
	others []*value
}

func newConstants(values []*value) constants {
	c := constants{texts: map[string]bool{}}
	for _, v := range values {
		if v.kind == typeString {
			c.texts[v.text] = true
		} else {
			c.others = append(c.others, v)
		}
	}
	return c
}

func (c constants) has(v *value) bool {
	return v.kind == typeString && c.texts[v.text] || slices.ContainsFunc(c.others, v.equal)
}
