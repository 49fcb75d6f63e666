package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDigits is the maximum number of digits for which Python converts an integer to a string
// (sys.int_info.default_max_str_digits).
const maxDigits = 4300

// str returns Python's str(v).
func (r *run) str(v Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case *undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr returns Python's repr(v).
func (r *run) repr(v Value) (string, error) {
	var p printer
	p.r = r
	if err := p.print(v); err != nil {
		return "", err
	}
	if err := r.alloc(p.b.Len()); err != nil {
		return "", err
	}
	return p.b.String(), nil
}

type printer struct {
	r     *run
	b     strings.Builder
	depth int
}

func (p *printer) print(v Value) error {
	if p.depth++; p.depth > p.r.limits.Depth {
		return raise("RecursionError", "maximum recursion depth exceeded while getting the repr of an object")
	}
	defer func() { p.depth-- }()
	if err := p.r.tick(); err != nil {
		return err
	}
	if p.r.memory+int64(p.b.Len()) > p.r.limits.Memory {
		return limitError("the text of a value exceeds %d bytes of memory", p.r.limits.Memory)
	}
	switch v := v.(type) {
	case nil:
		p.b.WriteString("None")
	case bool:
		p.b.WriteString(pyBool(v))
	case int64:
		p.b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		s, err := bigText(v)
		if err != nil {
			return err
		}
		p.b.WriteString(s)
	case float64:
		p.b.WriteString(floatRepr(v))
	case string:
		p.b.WriteString(quote(v))
	case Bytes:
		p.b.WriteString(quoteBytes(string(v)))
	case *List:
		return p.items("[", v.Items, "]")
	case *Tuple:
		if len(v.Items) == 1 {
			return p.items("(", v.Items, ",)")
		}
		return p.items("(", v.Items, ")")
	case *Dict:
		p.b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				p.b.WriteString(", ")
			}
			if err := p.print(k); err != nil {
				return err
			}
			p.b.WriteString(": ")
			if err := p.print(v.values[i]); err != nil {
				return err
			}
		}
		p.b.WriteByte('}')
	case *dictView:
		items := make([]Value, v.d.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return p.items("dict_"+v.kind+"([", items, "])")
	case *Range:
		fmt.Fprintf(&p.b, "range(%d, %d", v.start, v.stop)
		if v.step != 1 {
			fmt.Fprintf(&p.b, ", %d", v.step)
		}
		p.b.WriteByte(')')
	case *undefined:
		p.b.WriteString("Undefined")
	case *namespace:
		p.b.WriteString("<Namespace ")
		if err := p.print(v.attrs); err != nil {
			return err
		}
		p.b.WriteByte('>')
	case printed:
		s, err := v.repr(p.r)
		if err != nil {
			return err
		}
		p.b.WriteString(s)
	case *slice:
		return p.items("slice(", []Value{v.start, v.stop, v.step}, ")")
	case *iterator:
		// Python prints an address here, so no template can depend on it.
		if v.name != "" {
			fmt.Fprintf(&p.b, "<%s object %s at 0x0>", v.typ, v.name)
		} else {
			fmt.Fprintf(&p.b, "<%s object at 0x0>", v.typ)
		}
	case *builtin:
		if v.repr != "" {
			p.b.WriteString(v.repr)
		} else {
			fmt.Fprintf(&p.b, "<built-in method %s of object at 0x0>", v.name)
		}
	default:
		fmt.Fprintf(&p.b, "<%s object at 0x0>", typeName(v))
	}
	return nil
}

func (p *printer) items(open string, items []Value, end string) error {
	p.b.WriteString(open)
	for i, v := range items {
		if i > 0 {
			p.b.WriteString(", ")
		}
		if err := p.print(v); err != nil {
			return err
		}
	}
	p.b.WriteString(end)
	return nil
}

func pyBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func bigText(v *big.Int) (string, error) {
	if v.BitLen() > maxDigits*4 {
		return "", valueError("Exceeds the limit (%d digits) for integer string conversion", maxDigits)
	}
	s := v.String()
	if len(strings.TrimPrefix(s, "-")) > maxDigits {
		return "", valueError("Exceeds the limit (%d digits) for integer string conversion", maxDigits)
	}
	return s, nil
}

// floatRepr returns the shortest decimal that parses to f. It has an exponent below -4 and from 16 on, as in Python.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	at := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[at+1:])
	if exp < -4 || exp >= 16 {
		sign := "+"
		if exp < 0 {
			sign, exp = "-", -exp
		}
		return fmt.Sprintf("%se%s%02d", s[:at], sign, exp)
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsRune(s, '.') {
		s += ".0"
	}
	return s
}

// quote returns the repr of a str.
func quote(s string) string {
	q := byte('\'')
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for _, c := range s {
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < utf8.RuneSelf || unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	b.WriteByte(q)
	return b.String()
}

func quoteBytes(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte('b')
	b.WriteByte(q)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == q || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(q)
	return b.String()
}
