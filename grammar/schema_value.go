package grammar

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

	"github.com/ingotml/ingot/limits"
)

// value is a JSON value whose objects keep their order.
type value struct {
	kind  typeSet // one of them; numbers are anyNumber
	text  string  // of a string; a number as it is written
	truth bool
	items []*value
	keys  []string // of an object, beside items
}

// get is the value of a key, nil where there is none.
func (v *value) get(key string) *value {
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
		}
	}
	return nil
}

// readValue reads one JSON value.
func readValue(source []byte) (*value, error) {
	if len(source) > limits.GrammarSource {
		return nil, failure(ErrLimit, "a schema of %d bytes; at most %d", len(source), limits.GrammarSource)
	}
	if !utf8.Valid(source) {
		return nil, failure(ErrInvalid, "the schema is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(source))
	d.UseNumber()
	v, err := readNext(d, 0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = failure(ErrInvalid, "the schema goes on after its end, at byte %d", d.InputOffset())
		}
	}
	return v, err
}

func readNext(d *json.Decoder, depth int) (*value, error) {
	if depth > limits.GrammarNesting {
		return nil, failure(ErrLimit, "the schema has more than %d levels", limits.GrammarNesting)
	}
	t, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, failure(ErrInvalid, "the schema is not JSON: byte %d: %v", d.InputOffset(), err)
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
				return nil, failure(ErrInvalid, "the schema has the key %q twice in one object, at byte %d", k.text, d.InputOffset())
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
		return nil, failure(ErrInvalid, "the schema is not JSON: byte %d: %v", d.InputOffset(), err)
	}
	return v, nil
}

// dump appends v as json.dumps writes it; ascii: with its ensure_ascii, which is the default there.
func (v *value) dump(b []byte, ascii bool) []byte {
	switch v.kind {
	case typeNull:
		return append(b, "null"...)
	case typeBoolean:
		return strconv.AppendBool(b, v.truth)
	case anyNumber:
		return append(b, v.text...)
	case typeString:
		return dumpString(b, v.text, ascii)
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
		b = dumpString(b, v.keys[i], ascii)
		b = append(b, ": "...)
		b = item.dump(b, ascii)
	}
	return append(b, '}')
}

func dumpString(b []byte, s string, ascii bool) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case needsEscape.has(r):
			b = append(b, escapesOf(r)[0]...)
		case ascii && r > 0xffff:
			r -= 0x10000
			b = append(b, unicodeEscape(0xd800+r>>10)+unicodeEscape(0xdc00+r&0x3ff)...)
		case ascii && r >= 0x7f:
			b = append(b, unicodeEscape(r)...)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// words is the ways to write v that a grammar takes: with characters as they are, and with escapes for all but ASCII.
func (v *value) words() []string {
	plain := string(v.dump(nil, false))
	if ascii := string(v.dump(nil, true)); ascii != plain {
		return []string{plain, ascii}
	}
	return []string{plain}
}

// rational is the value of a number. Numbers whose digits would fill memory are refused.
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

// equal is JSON's equality: numbers by value, objects in any order.
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

// constants finds values among others: texts by a map, all else one by one.
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
