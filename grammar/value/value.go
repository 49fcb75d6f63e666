// Package value has the JSON values that schemas are made of, and their texts as constants.
//
// Contract: values are immutable once read. Reading bounds their bytes and their nesting, and refuses an object with
// the same key twice.
package value

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Types is a set of JSON types.
type Types uint8

const (
	Null Types = 1 << iota
	Boolean
	Integer
	Fraction // a number that is not an integer
	String
	Array
	Object

	AnyNumber = Integer | Fraction
	AnyType   = Null | Boolean | AnyNumber | String | Array | Object
)

// TypeNames are the types that a schema can name.
var TypeNames = map[string]Types{"null": Null, "boolean": Boolean, "integer": Integer, "number": AnyNumber,
	"string": String, "array": Array, "object": Object}

// Value is a JSON value. Objects keep the order of their members.
type Value struct {
	Kind  Types  // a single type; numbers are AnyNumber
	Text  string // of a string; of a number, its literal
	Truth bool
	Items []*Value
	Keys  []string // of an object, parallel to items
}

// Get returns the value of a key, or nil.
func (v *Value) Get(key string) *Value {
	for i, k := range v.Keys {
		if k == key {
			return v.Items[i]
		}
	}
	return nil
}

// Mentions reports whether an object in v has a key.
func (v *Value) Mentions(key string) bool {
	return slices.Contains(v.Keys, key) || slices.ContainsFunc(v.Items, func(i *Value) bool { return i.Mentions(key) })
}

// Rational returns the value of a number, or false if its digits could exhaust memory.
func (v *Value) Rational() (*big.Rat, bool) {
	if v.Kind != AnyNumber || len(v.Text) > 400 {
		return nil, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(v.Text), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > 400 || n < -400 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(v.Text)
}

// Equal is JSON equality: numbers by value, objects in any order.
func (v *Value) Equal(o *Value) bool {
	if v.Kind != o.Kind || v.Truth != o.Truth || len(v.Items) != len(o.Items) {
		return false
	}
	switch v.Kind {
	case AnyNumber:
		a, ok := v.Rational()
		b, ok2 := o.Rational()
		if ok && ok2 {
			return a.Cmp(b) == 0
		}
		return v.Text == o.Text
	case String:
		return v.Text == o.Text
	case Object:
		for i, k := range v.Keys {
			if other := o.Get(k); other == nil || !v.Items[i].Equal(other) {
				return false
			}
		}
		return true
	}
	for i, item := range v.Items {
		if !item.Equal(o.Items[i]) {
			return false
		}
	}
	return true
}

// Constants looks up values: strings in a map, all others by a linear search.
type Constants struct {
	texts  map[string]bool
	others []*Value
}

func NewConstants(values []*Value) Constants {
	c := Constants{texts: map[string]bool{}}
	for _, v := range values {
		if v.Kind == String {
			c.texts[v.Text] = true
		} else {
			c.others = append(c.others, v)
		}
	}
	return c
}

func (c Constants) Has(v *Value) bool {
	return v.Kind == String && c.texts[v.Text] || slices.ContainsFunc(c.others, v.Equal)
}

// Unique reports whether the items of an array differ.
func (v *Value) Unique() bool {
	for i, item := range v.Items {
		if slices.ContainsFunc(v.Items[:i], item.Equal) {
			return false
		}
	}
	return true
}

// SetOf returns the set of names.
func SetOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// StringAt returns the string at a key, or "".
func (v *Value) StringAt(key string) string {
	if at := v.Get(key); at != nil && at.Kind == String {
		return at.Text
	}
	return ""
}
