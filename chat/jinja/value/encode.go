package value

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

// JSONStyle is how JSON is written, as the arguments of Python's json.dumps say.
type JSONStyle struct {
	ASCII, Sort, Pretty bool
	Indent, Item, Key   string // of a level; separators of items, and of keys and values
}

// EncodeJSON returns Python's json.dumps(v).
func (r *Run) EncodeJSON(v Value, style JSONStyle) (string, error) {
	e := &jsonEncoder{r: r, style: style}
	if err := e.value(v, 0); err != nil {
		return "", err
	}
	return e.b.String(), r.Alloc(e.b.Len())
}

type jsonEncoder struct {
	r     *Run
	b     strings.Builder
	style JSONStyle
}

func (e *jsonEncoder) value(v Value, depth int) error {
	if depth > e.r.Limits.Depth {
		return Raise("RecursionError", "maximum recursion depth exceeded while encoding a JSON object")
	}
	if err := e.r.Tick(); err != nil {
		return err
	}
	if e.r.memory+int64(e.b.Len()) > e.r.Limits.Memory {
		return LimitError("the JSON exceeds %d bytes of memory", e.r.Limits.Memory)
	}
	switch x := v.(type) {
	case nil:
		e.b.WriteString("null")
	case bool:
		e.b.WriteString(strconv.FormatBool(x))
	case int64:
		e.b.WriteString(strconv.FormatInt(x, 10))
	case *big.Int:
		s, err := BigText(x)
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
		return TypeError("Object of type %s is not JSON serializable", TypeName(v))
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
	return FloatRepr(f)
}

func (e *jsonEncoder) line(depth int) error {
	if !e.style.Pretty {
		return nil
	}
	s, err := e.r.Repeat(e.style.Indent, int64(depth))
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
			e.b.WriteString(e.style.Item)
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
	if e.style.Sort {
		key := func(_ *Run, v Value) (Value, error) { return d.keys[v.(int64)], nil }
		var err error
		if order, err = e.r.SortBy(order, key, false); err != nil {
			return err
		}
	}
	e.b.WriteByte('{')
	for n, i := range order {
		if n > 0 {
			e.b.WriteString(e.style.Item)
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
			return TypeError("keys must be str, int, float, bool or None, not %s", TypeName(k))
		}
		e.b.WriteString(e.style.Key)
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
		plain := c >= ' ' && c != '"' && c != '\\' && (!e.style.ASCII || c < 0x7f)
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
	r := NewRun(context.Background(), DefaultLimits(Size(v)), 0, nil)
	e := &jsonEncoder{r: r, style: JSONStyle{Item: ", ", Key: ": "}}
	err := e.value(v, 0)
	return e.b.String(), err
}
