package value

import (
	"fmt"
	"math"
	"math/big"
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
		return nil, fmt.Errorf("%w: want a JSON object with the variables, not %s", ErrInput, TypeName(v))
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
	column := RuneCount(before[strings.LastIndexByte(before, '\n')+1:]) + 1
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
		o.Put(k, v)
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
		for n < len(s) && IsDigit(s[n]) {
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
	if n > MaxDigits {
		return nil, d.fail("integer of more than %d digits", MaxDigits)
	}
	d.i += n
	if i, err := strconv.ParseInt(s[:n], 10, 64); err == nil {
		return i, nil
	}
	b, _ := new(big.Int).SetString(s[:n], 10)
	return NormInt(b), nil
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
