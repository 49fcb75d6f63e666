package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/grammar/jsontext"
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
