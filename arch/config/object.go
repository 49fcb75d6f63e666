// Package config reads config.json: the keys that many model types share, and what follows from them.
//
// [Object] is the reader. It bounds every number, so that no product of sizes overflows an int64, and keeps the first
// error, one line that names the key and its value. [Common], [Dense], [Mixture], [LatentDecoder], [SSM] and [Rope] are
// parts of configurations. Each part adds its tensors to a tensor table and knows its state of a sequence. A model type
// embeds the parts that it has. Types are in package arch/types; no name of one is here.
package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits/clip"
	"github.com/ingotml/ingot/internal/limits/pyjson"
)

// ErrBad reports a config.json that cannot be used: broken JSON, a missing key, or a value out of bounds.
var ErrBad = errors.New("bad configuration")

// Object reads the keys of a JSON object. The first error is kept and shared with nested objects, so a parser reads all
// keys and checks once. A key whose value is null counts as absent, as in transformers.
type Object struct {
	Prefix string // key prefix in messages: "rope_scaling."
	Keys   map[string]json.RawMessage
	outer  map[string]string // prefixes of keys inherited from outer objects; see overlay
	given  map[string]string // names in the file of keys that have other names here; see called
	Err    *error
}

// Error is an [ErrBad] with a complete message of its own.
type Error string

func (e Error) Error() string { return "config.json: " + string(e) }

func (e Error) Unwrap() error { return ErrBad }

func Errorf(format string, args ...any) error { return Error(fmt.Sprintf(format, args...)) }

// Parse parses a whole config.json.
func Parse(data []byte) (Object, error) {
	if !utf8.Valid(data) {
		return Object{}, Errorf("not UTF-8")
	}
	data = pyjson.Plain(data)
	o := Object{Err: new(error)}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&o.Keys); err != nil {
		return Object{}, Errorf("%s", pyjson.Words(err, data))
	}
	if _, err := d.Token(); err != io.EOF {
		return Object{}, Errorf("text after the JSON object")
	}
	if o.Keys == nil {
		return Object{}, Errorf("null, want an object")
	}
	return o, nil
}

func (o Object) Failed() error { return *o.Err }

// path returns a key's full name for messages.
func (o Object) path(key string) string {
	if name, ok := o.given[key]; ok {
		key = name
	}
	if p, ok := o.outer[key]; ok {
		return p + key
	}
	return o.Prefix + key
}

// Renamed gives keys the names that other model types have for them. names are pairs: here, and in the file.
func (o Object) Renamed(names ...string) Object {
	o.Keys, o.given = maps.Clone(o.Keys), map[string]string{}
	for i := 0; i+1 < len(names); i += 2 {
		here, there := names[i], names[i+1]
		if v, ok := o.Keys[there]; ok {
			o.Keys[here] = v
		}
		if _, ok := o.Keys[here]; !ok || o.Keys[there] != nil {
			o.given[here] = there
		}
	}
	return o
}

// Fail records that the value of key is invalid. must completes "must ...".
func (o Object) Fail(key, must string) {
	if *o.Err == nil {
		value := clip.Line(string(pyjson.AsPython(o.Keys[key])), MaxQuoted)
		*o.Err = Errorf("%s = %s: must %s", o.path(key), value, must)
	}
}

// Missing records that a required key is absent.
func (o Object) Missing(key string) {
	if *o.Err == nil {
		*o.Err = Errorf("%s: missing", o.path(key))
	}
}

func (o Object) Has(key string) bool {
	v, ok := o.Keys[key]
	return ok && string(bytes.TrimSpace(v)) != "null"
}

// Required returns a required integer in [lo, hi].
func (o Object) Required(key string, lo, hi int) int {
	if !o.Has(key) {
		o.Missing(key)
		return lo
	}
	return o.Integer(key, lo, lo, hi)
}

// Integer returns an integer in [lo, hi], or def if the key is absent. 4096.0 counts as an integer.
func (o Object) Integer(key string, def, lo, hi int) int {
	if !o.Has(key) {
		return def
	}
	v, ok := AsInteger(o.Keys[key])
	switch {
	case !ok:
		o.Fail(key, "be an integer")
	case v < int64(lo) && lo == 1:
		o.Fail(key, "be > 0")
	case v < int64(lo):
		o.Fail(key, fmt.Sprintf("be >= %d", lo))
	case v > int64(hi):
		o.Fail(key, fmt.Sprintf("be <= %d", hi))
	default:
		return int(v)
	}
	return def
}

func AsInteger(raw json.RawMessage) (int64, bool) {
	s := string(bytes.TrimSpace(raw))
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	f, ok := AsNumber(raw)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func AsNumber(raw json.RawMessage) (float64, bool) {
	var n json.Number
	if s := bytes.TrimSpace(raw); len(s) == 0 || s[0] == '"' || json.Unmarshal(s, &n) != nil {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil && !math.IsInf(f, 0)
}

// Above returns a number greater than lo, or def if the key is absent.
func (o Object) Above(key string, def, lo float64) float64 {
	return o.Number(key, def, func(v float64) bool { return v > lo }, fmt.Sprintf("be > %v", lo))
}

// AtLeast returns a number of at least lo, or def if the key is absent.
func (o Object) AtLeast(key string, def, lo float64) float64 {
	return o.Number(key, def, func(v float64) bool { return v >= lo }, fmt.Sprintf("be >= %v", lo))
}

// MaxNumber bounds every number. Models compute in float32, which must hold it with room for a product.
const MaxNumber = 1e18

func (o Object) Number(key string, def float64, ok func(float64) bool, must string) float64 {
	if !o.Has(key) {
		return def
	}
	v, isNumber := AsNumber(o.Keys[key])
	switch {
	case !isNumber:
		o.Fail(key, "be a number")
	case !ok(v):
		o.Fail(key, must)
	case v > MaxNumber:
		o.Fail(key, fmt.Sprintf("be <= %v", MaxNumber))
	default:
		return v
	}
	return def
}

func (o Object) Bool(key string, def bool) bool {
	if o.Has(key) && json.Unmarshal(o.Keys[key], &def) != nil {
		o.Fail(key, "be true or false")
	}
	return def
}

func (o Object) String(key, def string) string {
	if o.Has(key) && json.Unmarshal(o.Keys[key], &def) != nil {
		o.Fail(key, "be a string")
	}
	return def
}

func (o Object) Strings(key string) []string {
	var out []string
	if o.Has(key) && json.Unmarshal(o.Keys[key], &out) != nil {
		o.Fail(key, "be a list of strings")
	}
	return out
}

// Tokens returns token ids. They are published as one integer, as a list, or as null for none.
func (o Object) Tokens(key string, def []int32) []int32 {
	if _, ok := o.Keys[key]; !ok {
		return def
	}
	if !o.Has(key) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(o.Keys[key], &list) != nil {
		list = []json.RawMessage{o.Keys[key]}
	}
	var out []int32
	for _, raw := range list {
		v, ok := AsInteger(raw)
		if !ok || v < 0 || v > math.MaxInt32 {
			o.Fail(key, "be a token id or a list of them")
			return nil
		}
		out = append(out, int32(v))
	}
	return out
}

// Object returns a nested object. ok is false if it is absent or empty.
func (o Object) Object(key string) (Object, bool) {
	if !o.Has(key) {
		return Object{}, false
	}
	in := Object{Prefix: o.path(key) + ".", Err: o.Err}
	if json.Unmarshal(o.Keys[key], &in.Keys) != nil {
		o.Fail(key, "be an object")
	}
	return in, len(in.Keys) > 0
}

// overlay returns the keys of o overridden by those of the nested object under key: the configuration of one part of a
// multimodal model. Without such an object it returns o itself and false.
func (o Object) overlay(key string) (Object, bool) {
	in, ok := o.Object(key)
	if !ok {
		return o, false
	}
	in.outer = map[string]string{}
	for k, v := range o.Keys {
		if _, own := in.Keys[k]; !own && k != key {
			in.Keys[k] = v
			in.outer[k] = o.Prefix
		}
	}
	return in, true
}

// List returns the elements of a list, at most limit, or nil if the key is absent.
func (o Object) List(key string, limit int) []json.RawMessage {
	var out []json.RawMessage
	if !o.Has(key) {
		return nil
	}
	if json.Unmarshal(o.Keys[key], &out) != nil {
		o.Fail(key, "be a list")
	}
	if len(out) > limit {
		o.Fail(key, fmt.Sprintf("have at most %d elements", limit))
		return nil
	}
	return out
}

// Integers returns a list of integers in [lo, hi].
func (o Object) Integers(key string, limit, lo, hi int) []int {
	var out []int
	for _, raw := range o.List(key, limit) {
		v, ok := AsInteger(raw)
		if !ok || v < int64(lo) || v > int64(hi) {
			o.Fail(key, fmt.Sprintf("be a list of integers from %d to %d", lo, hi))
			return nil
		}
		out = append(out, int(v))
	}
	return out
}

// Numbers returns a list of numbers above 0.
func (o Object) Numbers(key string, limit int) []float64 {
	var out []float64
	for _, raw := range o.List(key, limit) {
		v, ok := AsNumber(raw)
		if !ok || v <= 0 || v > MaxNumber {
			o.Fail(key, "be a list of numbers > 0")
			return nil
		}
		out = append(out, v)
	}
	return out
}

// Words returns a list of n words, each one of known, or nil if the key is absent.
func (o Object) Words(key string, n int, known ...string) []string {
	list := o.Strings(key)
	if list == nil {
		return nil
	}
	if len(list) != n {
		o.Fail(key, fmt.Sprintf("have %d elements, one per layer (it has %d)", n, len(list)))
		return nil
	}
	for i, s := range list {
		if !slices.Contains(known, s) {
			o.Fail(key, fmt.Sprintf("hold %s only (element %d is %q)", strings.Join(known, " and "), i, clip.Line(s, MaxQuoted)))
			return nil
		}
	}
	return list
}

// MaxQuoted limits the characters of a quotation from the file.
const MaxQuoted = 60

func ClipAll(list []string) []string {
	out := make([]string, 0, 4)
	for i, s := range list {
		if i == 3 {
			return append(out, fmt.Sprintf("%d more", len(list)-i))
		}
		out = append(out, clip.Line(s, MaxQuoted))
	}
	return out
}

func SortedKeys(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }

// MustBe refuses switches that are given and have another value.
func (o Object) MustBe(want bool, keys ...string) {
	for _, key := range keys {
		if o.Bool(key, want) != want {
			o.Fail(key, fmt.Sprintf("be %v", want))
		}
	}
}
