// Package jsonfit decodes the JSON of requests into Go values.
//
// Contract:
//   - Decoding is that of encoding/json, but a whole number in any notation (5.0, 1e3) fits an integer, also as a key.
//     Values that a type decodes itself or keeps as text are what the client wrote. A byte order mark is skipped, and
//     bytes that are not UTF-8 become U+FFFD. Elements of a list start from zero.
//   - An error is an *Error with the path of the field as the client wrote it, what is there and what is wanted, in
//     JSON's words; never in those of this program. Types with their own UnmarshalJSON call Unmarshal, Wrong and In,
//     and their errors need not name the field that they are in.
//   - Text that is not JSON is an error with its line, and no path.
//   - The size of the text is the caller's to bound. Nesting is bounded by limits.RequestNesting.
package jsonfit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/jsonread"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// Unmarshal decodes a text into v, a pointer. After an error, v is partly set.
func Unmarshal(data []byte, v any) error {
	if data = bytes.TrimPrefix(data, []byte("\ufeff")); !utf8.Valid(data) { // otherwise the text is not copied
		data = bytes.ToValidUTF8(data, []byte("\ufffd"))
	}
	d := &decoder{}
	d.Reader = jsonread.New(data, jsonread.Options{Nesting: limits.RequestNesting, ReplaceSurrogates: true, Fail: d.fault})
	if err := d.value(reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	return d.End()
}

type decoder struct{ jsonread.Reader }

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	numberType  = reflect.TypeFor[json.Number]()
)

// raw consumes a value and returns its text.
func (d *decoder) raw() ([]byte, error) {
	d.Peek()
	start := d.Pos
	err := d.Skip()
	return d.Text[start:d.Pos], err
}

// value decodes the value that comes next.
func (d *decoder) value(v reflect.Value) error {
	null := d.Peek() == 'n'
	for v.Kind() == reflect.Pointer && !null {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.Pointer && v.Type().Name() != "" && v.CanAddr() && v.Addr().Type().Implements(unmarshaler) {
		text, err := d.raw()
		if err != nil {
			return err
		}
		return own(v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(text))
	}
	if null {
		switch v.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
			v.SetZero()
		}
		return d.Literal("null")
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.object(v)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			return d.list(v)
		}
	case reflect.Map:
		if kind := v.Type().Key().Kind(); kind == reflect.String || isInteger(kind) {
			return d.mapping(v)
		}
	case reflect.String:
		if d.Peek() == '"' && v.Type() != numberType {
			text, err := d.Str()
			v.SetString(string(text))
			return err
		}
	case reflect.Bool:
		if c := d.Peek(); c == 't' || c == 'f' {
			v.SetBool(c == 't')
			return d.Literal(map[byte]string{'t': "true", 'f': "false"}[c])
		}
	}
	if isInteger(v.Kind()) && isNumber(d.Peek()) {
		text, err := d.Number()
		if err != nil {
			return err
		}
		return setInteger(v, string(text))
	}
	return d.other(v)
}

// other decodes what encoding/json decodes alike, and reports what does not fit.
func (d *decoder) other(v reflect.Value) error {
	text, err := d.raw()
	if err != nil {
		return err
	}
	if v.CanAddr() {
		if err := json.Unmarshal(text, v.Addr().Interface()); err == nil {
			return nil
		}
	}
	return Wrong(text, pyjson.Kind(v.Type()))
}

// list decodes an array.
func (d *decoder) list(v reflect.Value) error {
	if d.Peek() != '[' {
		return d.other(v)
	}
	list := reflect.New(v.Type()).Elem()
	list.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty array is not nil
	err := d.Array(func(i int) error {
		list.Grow(1) // amortized
		list.SetLen(i + 1)
		return in(d.value(list.Index(i)), Step{Index: i})
	})
	v.Set(list)
	return err
}

// mapping decodes an object into a map.
func (d *decoder) mapping(v reflect.Value) error {
	if d.Peek() != '{' {
		return d.other(v)
	}
	t := v.Type()
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	return d.Object(func(key []byte) error {
		k, name := reflect.New(t.Key()).Elem(), string(key)
		if k.Kind() == reflect.String {
			k.SetString(name)
		} else if err := setInteger(k, name); err != nil {
			return Errorf("the key %s is not %s", quoted(name), pyjson.Kind(t.Key()))
		}
		element := reflect.New(t.Elem()).Elem()
		err := in(d.value(element), Step{Name: name})
		v.SetMapIndex(k, element)
		return err
	})
}

// object decodes an object into a struct. Fields that the struct lacks are ignored.
func (d *decoder) object(v reflect.Value) error {
	if d.Peek() != '{' {
		return d.other(v)
	}
	fields := fieldsOf(v.Type())
	return d.Object(func(key []byte) error {
		f, known := fields.find(key)
		if !known {
			d.Peek()
			return d.Skip()
		}
		return in(d.value(member(v, f.index)), Step{Name: f.name})
	})
}

// member returns a field of a struct, and makes the embedded structs on the way to it.
func member(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// fault words an error of the text.
func (d *decoder) fault(f jsonread.Fault) error {
	if f.Problem == jsonread.TooDeep {
		return Errorf("objects and arrays are nested more than %d deep", limits.RequestNesting)
	}
	if f.Offset >= len(d.Text) {
		return &syntaxError{"the JSON ends too early"}
	}
	line := 1 + bytes.Count(d.Text[:f.Offset], []byte("\n"))
	what := f.What()
	if f.Problem == jsonread.Unexpected {
		what += " " + jsonread.Found(d.Text, f.Offset)
	}
	return &syntaxError{fmt.Sprintf("invalid JSON in line %d: %s", line, what)}
}

// syntaxError is an error of the text, which has no path.
type syntaxError struct{ text string }

func (e *syntaxError) Error() string { return e.text }
