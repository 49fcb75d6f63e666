package value

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// MaxDigits is the maximum number of digits for which Python converts an integer to a string
// (sys.int_info.default_max_str_digits).
const MaxDigits = 4300

// Str returns Python's str(v).
func (r *Run) Str(v Value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case *Undefined:
		return "", nil
	}
	return r.Repr(v)
}

// Repr returns Python's repr(v).
func (r *Run) Repr(v Value) (string, error) {
	var p printer
	p.r = r
	if err := p.print(v); err != nil {
		return "", err
	}
	if err := r.Alloc(p.b.Len()); err != nil {
		return "", err
	}
	return p.b.String(), nil
}

type printer struct {
	r     *Run
	b     strings.Builder
	depth int
}

func (p *printer) print(v Value) error {
	if p.depth++; p.depth > p.r.Limits.Depth {
		return Raise("RecursionError", "maximum recursion depth exceeded while getting the repr of an object")
	}
	defer func() { p.depth-- }()
	if err := p.r.Tick(); err != nil {
		return err
	}
	if p.r.memory+int64(p.b.Len()) > p.r.Limits.Memory {
		return LimitError("the text of a value exceeds %d bytes of memory", p.r.Limits.Memory)
	}
	switch v := v.(type) {
	case nil:
		p.b.WriteString("None")
	case bool:
		p.b.WriteString(pyBool(v))
	case int64:
		p.b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		s, err := BigText(v)
		if err != nil {
			return err
		}
		p.b.WriteString(s)
	case float64:
		p.b.WriteString(FloatRepr(v))
	case string:
		p.b.WriteString(Quote(v))
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
	case *DictView:
		items := make([]Value, v.Dict.Len())
		for i := range items {
			items[i] = v.at(i)
		}
		return p.items("dict_"+v.Kind+"([", items, "])")
	case *Range:
		fmt.Fprintf(&p.b, "range(%d, %d", v.Start, v.Stop)
		if v.Step != 1 {
			fmt.Fprintf(&p.b, ", %d", v.Step)
		}
		p.b.WriteByte(')')
	case *Undefined:
		p.b.WriteString("Undefined")
	case *Namespace:
		p.b.WriteString("<Namespace ")
		if err := p.print(v.Attrs); err != nil {
			return err
		}
		p.b.WriteByte('>')
	case Printer:
		s, err := v.Repr(p.r)
		if err != nil {
			return err
		}
		p.b.WriteString(s)
	case *Slice:
		return p.items("slice(", []Value{v.Start, v.Stop, v.Step}, ")")
	case *Iterator:
		// Python prints an address here, so no template can depend on it.
		if v.name != "" {
			fmt.Fprintf(&p.b, "<%s object %s at 0x0>", v.Type, v.name)
		} else {
			fmt.Fprintf(&p.b, "<%s object at 0x0>", v.Type)
		}
	case *Builtin:
		if v.repr != "" {
			p.b.WriteString(v.repr)
		} else {
			fmt.Fprintf(&p.b, "<built-in method %s of object at 0x0>", v.Name)
		}
	default:
		fmt.Fprintf(&p.b, "<%s object at 0x0>", TypeName(v))
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

// BigText returns the decimal digits of v, within Python's limit.
func BigText(v *big.Int) (string, error) {
	if v.BitLen() > MaxDigits*4 {
		return "", ValueError("Exceeds the limit (%d digits) for integer string conversion", MaxDigits)
	}
	s := v.String()
	if len(strings.TrimPrefix(s, "-")) > MaxDigits {
		return "", ValueError("Exceeds the limit (%d digits) for integer string conversion", MaxDigits)
	}
	return s, nil
}

// FloatRepr returns the shortest decimal that parses to f. It has an exponent below -4 and from 16 on, as in Python.
func FloatRepr(f float64) string {
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

// Quote returns the repr of a str.
func Quote(s string) string {
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
		case unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			b.WriteString(QuoteEscape(c))
		}
	}
	b.WriteByte(q)
	return b.String()
}
