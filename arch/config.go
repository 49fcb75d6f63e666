package arch

import (
	"bytes"
	"encoding/json"
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

// object reads the keys of a JSON object. The first error is kept and shared with nested objects, so a parser reads all
// keys and checks once. A key whose value is null counts as absent, as in transformers.
type object struct {
	prefix string // key prefix in messages: "rope_scaling."
	raw    map[string]json.RawMessage
	outer  map[string]string // prefixes of keys inherited from outer objects; see overlay
	given  map[string]string // names in the file of keys that have other names here; see called
	err    *error
}

// configError is an [ErrConfig] with a complete message of its own.
type configError string

func (e configError) Error() string { return "config.json: " + string(e) }
func (e configError) Unwrap() error { return ErrConfig }

func configErrorf(format string, args ...any) error { return configError(fmt.Sprintf(format, args...)) }

// parseObject parses a whole config.json.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return object{}, configErrorf("not UTF-8")
	}
	data = pyjson.Plain(data)
	o := object{err: new(error)}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&o.raw); err != nil {
		return object{}, configErrorf("%s", pyjson.Words(err, data))
	}
	if _, err := d.Token(); err != io.EOF {
		return object{}, configErrorf("text after the JSON object")
	}
	if o.raw == nil {
		return object{}, configErrorf("null, want an object")
	}
	return o, nil
}

func (o object) failed() error { return *o.err }

// path returns a key's full name for messages.
func (o object) path(key string) string {
	if name, ok := o.given[key]; ok {
		key = name
	}
	if p, ok := o.outer[key]; ok {
		return p + key
	}
	return o.prefix + key
}

// called gives keys the names that other model types have for them. names are pairs: here, and in the file.
func (o object) called(names ...string) object {
	o.raw, o.given = maps.Clone(o.raw), map[string]string{}
	for i := 0; i+1 < len(names); i += 2 {
		here, there := names[i], names[i+1]
		if v, ok := o.raw[there]; ok {
			o.raw[here] = v
		}
		if _, ok := o.raw[here]; !ok || o.raw[there] != nil {
			o.given[here] = there
		}
	}
	return o
}

// fail records that the value of key is invalid. must completes "must ...".
func (o object) fail(key, must string) {
	if *o.err == nil {
		value := clip.Line(string(pyjson.AsPython(o.raw[key])), maxQuoted)
		*o.err = configErrorf("%s = %s: must %s", o.path(key), value, must)
	}
}

// missing records that a required key is absent.
func (o object) missing(key string) {
	if *o.err == nil {
		*o.err = configErrorf("%s: missing", o.path(key))
	}
}

func (o object) has(key string) bool {
	v, ok := o.raw[key]
	return ok && string(bytes.TrimSpace(v)) != "null"
}

// required returns a required integer in [lo, hi].
func (o object) required(key string, lo, hi int) int {
	if !o.has(key) {
		o.missing(key)
		return lo
	}
	return o.integer(key, lo, lo, hi)
}

// integer returns an integer in [lo, hi], or def if the key is absent. 4096.0 counts as an integer.
func (o object) integer(key string, def, lo, hi int) int {
	if !o.has(key) {
		return def
	}
	v, ok := asInteger(o.raw[key])
	switch {
	case !ok:
		o.fail(key, "be an integer")
	case v < int64(lo) && lo == 1:
		o.fail(key, "be > 0")
	case v < int64(lo):
		o.fail(key, fmt.Sprintf("be >= %d", lo))
	case v > int64(hi):
		o.fail(key, fmt.Sprintf("be <= %d", hi))
	default:
		return int(v)
	}
	return def
}

func asInteger(raw json.RawMessage) (int64, bool) {
	s := string(bytes.TrimSpace(raw))
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	f, ok := asNumber(raw)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

func asNumber(raw json.RawMessage) (float64, bool) {
	var n json.Number
	if s := bytes.TrimSpace(raw); len(s) == 0 || s[0] == '"' || json.Unmarshal(s, &n) != nil {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil && !math.IsInf(f, 0)
}

// above returns a number greater than lo, or def if the key is absent.
func (o object) above(key string, def, lo float64) float64 {
	return o.number(key, def, func(v float64) bool { return v > lo }, fmt.Sprintf("be > %v", lo))
}

// atLeast returns a number of at least lo, or def if the key is absent.
func (o object) atLeast(key string, def, lo float64) float64 {
	return o.number(key, def, func(v float64) bool { return v >= lo }, fmt.Sprintf("be >= %v", lo))
}

// maxNumber bounds every number. Models compute in float32, which must hold it with room for a product.
const maxNumber = 1e18

func (o object) number(key string, def float64, ok func(float64) bool, must string) float64 {
	if !o.has(key) {
		return def
	}
	v, isNumber := asNumber(o.raw[key])
	switch {
	case !isNumber:
		o.fail(key, "be a number")
	case !ok(v):
		o.fail(key, must)
	case v > maxNumber:
		o.fail(key, fmt.Sprintf("be <= %v", maxNumber))
	default:
		return v
	}
	return def
}

func (o object) boolean(key string, def bool) bool {
	if o.has(key) && json.Unmarshal(o.raw[key], &def) != nil {
		o.fail(key, "be true or false")
	}
	return def
}

func (o object) str(key, def string) string {
	if o.has(key) && json.Unmarshal(o.raw[key], &def) != nil {
		o.fail(key, "be a string")
	}
	return def
}

func (o object) strs(key string) []string {
	var out []string
	if o.has(key) && json.Unmarshal(o.raw[key], &out) != nil {
		o.fail(key, "be a list of strings")
	}
	return out
}

// tokens returns token ids. They are published as one integer, as a list, or as null for none.
func (o object) tokens(key string, def []int32) []int32 {
	if _, ok := o.raw[key]; !ok {
		return def
	}
	if !o.has(key) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(o.raw[key], &list) != nil {
		list = []json.RawMessage{o.raw[key]}
	}
	var out []int32
	for _, raw := range list {
		v, ok := asInteger(raw)
		if !ok || v < 0 || v > math.MaxInt32 {
			o.fail(key, "be a token id or a list of them")
			return nil
		}
		out = append(out, int32(v))
	}
	return out
}

// object returns a nested object. ok is false if it is absent or empty.
func (o object) object(key string) (object, bool) {
	if !o.has(key) {
		return object{}, false
	}
	in := object{prefix: o.path(key) + ".", err: o.err}
	if json.Unmarshal(o.raw[key], &in.raw) != nil {
		o.fail(key, "be an object")
	}
	return in, len(in.raw) > 0
}

// overlay returns the keys of o overridden by those of the nested object under key: the configuration of one part of a
// multimodal model. Without such an object it returns o itself and false.
func (o object) overlay(key string) (object, bool) {
	in, ok := o.object(key)
	if !ok {
		return o, false
	}
	in.outer = map[string]string{}
	for k, v := range o.raw {
		if _, own := in.raw[k]; !own && k != key {
			in.raw[k] = v
			in.outer[k] = o.prefix
		}
	}
	return in, true
}

// list returns the elements of a list, at most limit, or nil if the key is absent.
func (o object) list(key string, limit int) []json.RawMessage {
	var out []json.RawMessage
	if !o.has(key) {
		return nil
	}
	if json.Unmarshal(o.raw[key], &out) != nil {
		o.fail(key, "be a list")
	}
	if len(out) > limit {
		o.fail(key, fmt.Sprintf("have at most %d elements", limit))
		return nil
	}
	return out
}

// integers returns a list of integers in [lo, hi].
func (o object) integers(key string, limit, lo, hi int) []int {
	var out []int
	for _, raw := range o.list(key, limit) {
		v, ok := asInteger(raw)
		if !ok || v < int64(lo) || v > int64(hi) {
			o.fail(key, fmt.Sprintf("be a list of integers from %d to %d", lo, hi))
			return nil
		}
		out = append(out, int(v))
	}
	return out
}

// numbers returns a list of numbers above 0.
func (o object) numbers(key string, limit int) []float64 {
	var out []float64
	for _, raw := range o.list(key, limit) {
		v, ok := asNumber(raw)
		if !ok || v <= 0 || v > maxNumber {
			o.fail(key, "be a list of numbers > 0")
			return nil
		}
		out = append(out, v)
	}
	return out
}

// kinds returns a list of n words, each one of known, or nil if the key is absent.
func (o object) kinds(key string, n int, known ...string) []string {
	list := o.strs(key)
	if list == nil {
		return nil
	}
	if len(list) != n {
		o.fail(key, fmt.Sprintf("have %d elements, one per layer (it has %d)", n, len(list)))
		return nil
	}
	for i, s := range list {
		if !slices.Contains(known, s) {
			o.fail(key, fmt.Sprintf("hold %s only (element %d is %q)", strings.Join(known, " and "), i, clip.Line(s, maxQuoted)))
			return nil
		}
	}
	return list
}

// maxQuoted limits the characters of a quotation from the file.
const maxQuoted = 60

func clipAll(list []string) []string {
	out := make([]string, 0, 4)
	for i, s := range list {
		if i == 3 {
			return append(out, fmt.Sprintf("%d more", len(list)-i))
		}
		out = append(out, clip.Line(s, maxQuoted))
	}
	return out
}

func sortedKeys(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }

// mustBe refuses switches that are given and have another value.
func (o object) mustBe(want bool, keys ...string) {
	for _, key := range keys {
		if o.boolean(key, want) != want {
			o.fail(key, fmt.Sprintf("be %v", want))
		}
	}
}
