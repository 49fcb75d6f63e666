package jinja

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeJSON decodes JSON (RFC 8259) like Python's json: objects keep the order of their keys, a duplicate key keeps
// its first position and takes the last value, integers have arbitrary size, and NaN and Infinity are accepted. The
// error wraps ErrInput.
func DecodeJSON(data []byte) (Value, error) {
	d := &jsonDecoder{s: strings.TrimPrefix(string(data), "\ufeff")}
	if !utf8.ValidString(d.s) {
		return nil, fmt.Errorf("%w: the JSON is not UTF-8", ErrInput)
	}
	v, err := d.value(0)
	if err == nil {
		if d.space(); d.i < len(d.s) {
			err = d.fail("unexpected text after the value")
		}
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
		return nil, fmt.Errorf("%w: want a JSON object with the variables, not %s", ErrInput, typeName(v))
	}
	return d, nil
}

type jsonDecoder struct {
	s string
	i int
}

// maxJSONDepth is the maximum nesting. Python's limit is near 1000.
const maxJSONDepth = 900

func (d *jsonDecoder) fail(format string, args ...any) error {
	before := d.s[:min(d.i, len(d.s))]
	line := strings.Count(before, "\n") + 1
	column := runeCount(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%w: JSON line %d column %d: %s", ErrInput, line, column, fmt.Sprintf(format, args...))
}

func (d *jsonDecoder) space() {
	for d.i < len(d.s) && strings.IndexByte(" \t\n\r", d.s[d.i]) >= 0 {
		d.i++
	}
}

func (d *jsonDecoder) peek() byte {
	if d.space(); d.i < len(d.s) {
		return d.s[d.i]
	}
	return 0
}

func (d *jsonDecoder) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, d.fail("nested too deeply")
	}
	switch c := d.peek(); c {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return d.str()
	}
	for _, w := range []struct {
		word string
		v    Value
	}{{"null", nil}, {"true", true}, {"false", false}, {"NaN", math.NaN()}, {"Infinity", math.Inf(1)},
		{"-Infinity", math.Inf(-1)}} {
		if strings.HasPrefix(d.s[d.i:], w.word) {
			d.i += len(w.word)
			return w.v, nil
		}
	}
	return d.number()
}

func (d *jsonDecoder) object(depth int) (Value, error) {
	d.i++
	o := NewDict()
	if d.peek() == '}' {
		d.i++
		return o, nil
	}
	for {
		if d.peek() != '"' {
			return nil, d.fail("expected a key in double quotes")
		}
		k, err := d.str()
		if err != nil {
			return nil, err
		}
		if d.peek() != ':' {
			return nil, d.fail("expected ':'")
		}
		d.i++
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.set(k, v)
		switch d.peek() {
		case ',':
			d.i++
		case '}':
			d.i++
			return o, nil
		default:
			return nil, d.fail("expected ',' or '}'")
		}
	}
}

func (d *jsonDecoder) array(depth int) (Value, error) {
	d.i++
	l := &List{}
	if d.peek() == ']' {
		d.i++
		return l, nil
	}
	for {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
		switch d.peek() {
		case ',':
			d.i++
		case ']':
			d.i++
			return l, nil
		default:
			return nil, d.fail("expected ',' or ']'")
		}
	}
}

func (d *jsonDecoder) number() (Value, error) {
	s := d.s[d.i:]
	n := 0
	run := func() bool {
		from := n
		for n < len(s) && isDigit(s[n]) {
			n++
		}
		return n > from
	}
	if strings.HasPrefix(s, "-") {
		n++
	}
	switch {
	case n < len(s) && s[n] == '0':
		n++
	case !run():
		return nil, d.fail("expected a value")
	}
	whole := n
	if n < len(s) && s[n] == '.' {
		if n++; !run() {
			n = whole
		}
	}
	if mark := n; n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		if n++; n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		if !run() {
			n = mark
		}
	}
	if n > whole {
		f, _ := strconv.ParseFloat(s[:n], 64)
		d.i += n
		return f, nil
	}
	if n > maxDigits {
		return nil, d.fail("integer of more than %d digits", maxDigits)
	}
	d.i += n
	if i, err := strconv.ParseInt(s[:n], 10, 64); err == nil {
		return i, nil
	}
	b, _ := new(big.Int).SetString(s[:n], 10)
	return normInt(b), nil
}

func (d *jsonDecoder) str() (string, error) {
	d.i++
	start := d.i
	for d.i < len(d.s) && d.s[d.i] != '"' && d.s[d.i] != '\\' && d.s[d.i] >= ' ' {
		d.i++
	}
	if d.i < len(d.s) && d.s[d.i] == '"' {
		d.i++
		return d.s[start : d.i-1], nil
	}
	var b strings.Builder
	b.WriteString(d.s[start:d.i])
	for d.i < len(d.s) {
		c := d.s[d.i]
		switch {
		case c == '"':
			d.i++
			return b.String(), nil
		case c < ' ':
			return "", d.fail("control character in a string")
		case c != '\\':
			b.WriteByte(c)
			d.i++
			continue
		}
		if d.i+1 >= len(d.s) {
			break
		}
		c = d.s[d.i+1]
		if c == 'u' {
			u, ok := d.hex(d.i + 2)
			if !ok {
				return "", d.fail("bad \\u escape")
			}
			d.i += 6
			if utf16.IsSurrogate(u) && strings.HasPrefix(d.s[d.i:], `\u`) {
				if low, ok := d.hex(d.i + 2); ok {
					if pair := utf16.DecodeRune(u, low); pair != utf8.RuneError {
						u = pair
						d.i += 6
					}
				}
			}
			b.WriteRune(u)
			continue
		}
		at := strings.IndexByte(`"\/bfnrt`, c)
		if at < 0 {
			return "", d.fail("bad escape")
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[at])
		d.i += 2
	}
	return "", d.fail("unterminated string")
}

func (d *jsonDecoder) hex(at int) (rune, bool) {
	if at+4 > len(d.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(d.s[at:at+4], 16, 16)
	return rune(n), err == nil
}

// filterToJSON is json.dumps as transformers calls it.
func filterToJSON(r *run, v []Value) (Value, error) {
	style := jsonStyle{ascii: isTrue(v[1]), sort: isTrue(v[4]), item: ", ", key: ": "}
	if v[2] != missing && v[2] != nil {
		style.item, style.pretty = ",", true
		if s, ok := v[2].(string); ok {
			style.indent = s
		} else {
			n, err := clampInt(v[2])
			if err != nil {
				return nil, err
			}
			if style.indent, err = r.repeat(" ", max(n, 0)); err != nil {
				return nil, err
			}
		}
	}
	if v[3] != missing && v[3] != nil {
		pair, err := r.collect(v[3])
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, valueError("not enough values to unpack (expected 2, got %d)", len(pair))
		}
		if style.item, err = needText(pair[0], "item separator"); err != nil {
			return nil, err
		}
		if style.key, err = needText(pair[1], "key separator"); err != nil {
			return nil, err
		}
	}
	s, err := r.encodeJSON(v[0], style)
	return s, err
}

// jsonStyle is how JSON is written, as the arguments of Python's json.dumps say.
type jsonStyle struct {
	ascii, sort, pretty bool
	indent, item, key   string // of a level; separators of items, and of keys and values
}

// encodeJSON returns Python's json.dumps(v).
func (r *run) encodeJSON(v Value, style jsonStyle) (string, error) {
	e := &jsonEncoder{r: r, style: style}
	if err := e.value(v, 0); err != nil {
		return "", err
	}
	return e.b.String(), r.alloc(e.b.Len())
}

type jsonEncoder struct {
	r     *run
	b     strings.Builder
	style jsonStyle
}

func (e *jsonEncoder) value(v Value, depth int) error {
	if depth > e.r.limits.Depth {
		return raise("RecursionError", "maximum recursion depth exceeded while encoding a JSON object")
	}
	if err := e.r.tick(); err != nil {
		return err
	}
	if e.r.memory+int64(e.b.Len()) > e.r.limits.Memory {
		return limitError("the JSON exceeds %d bytes of memory", e.r.limits.Memory)
	}
	switch x := v.(type) {
	case nil:
		e.b.WriteString("null")
	case bool:
		e.b.WriteString(strconv.FormatBool(x))
	case int64:
		e.b.WriteString(strconv.FormatInt(x, 10))
	case *big.Int:
		s, err := bigText(x)
		if err != nil {
			return err
		}
		e.b.WriteString(s)
	case float64:
		e.b.WriteString(jsonFloat(x))
	case string:
		e.quote(x)
	case *List:
		return e.array(x.Items, depth)
	case *Tuple:
		return e.array(x.Items, depth)
	case *Dict:
		return e.object(x, depth)
	default:
		return typeError("Object of type %s is not JSON serializable", typeName(v))
	}
	return nil
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

func (e *jsonEncoder) line(depth int) error {
	if !e.style.pretty {
		return nil
	}
	s, err := e.r.repeat(e.style.indent, int64(depth))
	e.b.WriteByte('\n')
	e.b.WriteString(s)
	return err
}

func (e *jsonEncoder) array(items []Value, depth int) error {
	if len(items) == 0 {
		e.b.WriteString("[]")
		return nil
	}
	e.b.WriteByte('[')
	for i, x := range items {
		if i > 0 {
			e.b.WriteString(e.style.item)
		}
		if err := e.line(depth + 1); err != nil {
			return err
		}
		if err := e.value(x, depth+1); err != nil {
			return err
		}
	}
	err := e.line(depth)
	e.b.WriteByte(']')
	return err
}

func (e *jsonEncoder) object(d *Dict, depth int) error {
	if d.Len() == 0 {
		e.b.WriteString("{}")
		return nil
	}
	order := make([]Value, d.Len())
	for i := range order {
		order[i] = int64(i)
	}
	if e.style.sort {
		key := func(_ *run, v Value) (Value, error) { return d.keys[v.(int64)], nil }
		var err error
		if order, err = e.r.sortBy(order, key, false); err != nil {
			return err
		}
	}
	e.b.WriteByte('{')
	for n, i := range order {
		if n > 0 {
			e.b.WriteString(e.style.item)
		}
		if err := e.line(depth + 1); err != nil {
			return err
		}
		switch k := d.keys[i.(int64)].(type) {
		case string:
			e.quote(k)
		case nil, bool, int64, *big.Int, float64:
			e.b.WriteByte('"')
			if err := e.value(k, depth+1); err != nil {
				return err
			}
			e.b.WriteByte('"')
		default:
			return typeError("keys must be str, int, float, bool or None, not %s", typeName(k))
		}
		e.b.WriteString(e.style.key)
		if err := e.value(d.values[i.(int64)], depth+1); err != nil {
			return err
		}
	}
	err := e.line(depth)
	e.b.WriteByte('}')
	return err
}

func (e *jsonEncoder) quote(s string) {
	e.b.WriteByte('"')
	start := 0
	for i, c := range s {
		plain := c >= ' ' && c != '"' && c != '\\' && (!e.style.ascii || c < 0x7f)
		if plain {
			continue
		}
		e.b.WriteString(s[start:i])
		start = i + utf8.RuneLen(c)
		if at := slices.Index([]rune("\"\\\n\r\t\b\f"), c); at >= 0 {
			e.b.WriteByte('\\')
			e.b.WriteByte(`"\nrtbf`[at])
			continue
		}
		if c >= 0x10000 {
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(&e.b, `\u%04x\u%04x`, hi, lo)
			continue
		}
		fmt.Fprintf(&e.b, `\u%04x`, c)
	}
	e.b.WriteString(s[start:])
	e.b.WriteByte('"')
}

// EncodeJSON encodes a value like tojson: Python's json.dumps with ensure_ascii=False.
func EncodeJSON(v Value) (string, error) {
	r := newRun(context.Background(), DefaultLimits(Size(v)), 0, nil)
	e := &jsonEncoder{r: r, style: jsonStyle{item: ", ", key: ": "}}
	err := e.value(v, 0)
	return e.b.String(), err
}
