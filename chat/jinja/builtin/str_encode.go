package builtin

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// encode is str.encode for UTF-8, ASCII and Latin-1.
func encode(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("encode", "encoding?", "errors?")
	if err != nil {
		return nil, err
	}
	name := "utf-8"
	if v[0] != value.Missing {
		if name, err = value.NeedText(v[0], "encode() argument 'encoding'"); err != nil {
			return nil, err
		}
	}
	errs := "strict"
	if v[1] != value.Missing {
		if errs, err = value.NeedText(v[1], "encode() argument 'errors'"); err != nil {
			return nil, err
		}
	}
	s, _ := self.(string)
	if err := r.Alloc(len(s)); err != nil {
		return nil, err
	}
	limit := rune(0)
	switch strings.ReplaceAll(strings.ToLower(name), "_", "-") {
	case "utf-8", "utf8", "u8":
		return value.Bytes(s), nil
	case "ascii", "us-ascii", "646":
		limit = 0x80
	case "latin-1", "latin1", "iso-8859-1", "iso8859-1", "8859", "l1", "cp819":
		limit = 0x100
	default:
		return nil, value.Raise("LookupError", "unknown encoding: %s", name)
	}
	var b strings.Builder
	for _, c := range s {
		if c < limit {
			b.WriteByte(byte(c))
			continue
		}
		switch errs {
		case "ignore":
		case "replace":
			b.WriteByte('?')
		case "xmlcharrefreplace":
			fmt.Fprintf(&b, "&#%d;", c)
		case "backslashreplace":
			q := value.QuoteEscape(c)
			b.WriteString(q)
		default:
			return nil, value.Raise("UnicodeEncodeError", "'%s' codec can't encode character %s", name, value.QuoteEscape(c))
		}
	}
	return value.Bytes(b.String()), nil
}

func translate(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("translate", "/table")
	if err != nil {
		return nil, err
	}
	s, _ := self.(string)
	var b strings.Builder
	for _, c := range s {
		if err := r.Tick(); err != nil {
			return nil, err
		}
		to, err := r.Index(v[0], int64(c))
		if err != nil && !value.IsKind(err, "LookupError", "IndexError", "KeyError") {
			return nil, err
		}
		switch t := to.(type) {
		case nil:
			if err != nil {
				b.WriteRune(c)
			}
		case string:
			b.WriteString(t)
		case int64:
			if t < 0 || t > utf8.MaxRune {
				return nil, value.ValueError("character mapping must be in range(0x110000)")
			}
			b.WriteRune(rune(t))
		default:
			return nil, value.TypeError("character mapping must return integer, None or str")
		}
		if err := r.Alloc(utf8.RuneLen(c)); err != nil {
			return nil, err
		}
		if int64(b.Len()) > r.Limits.Memory {
			return nil, r.Alloc(b.Len())
		}
	}
	return b.String(), r.Alloc(b.Len())
}

func maketrans(r *value.Run, self value.Value, a *value.Arguments) (value.Value, error) {
	v, err := a.Bind("maketrans", "/x", "/y?", "/z?")
	if err != nil {
		return nil, err
	}
	table := value.NewDict()
	if v[1] == value.Missing {
		d, ok := v[0].(*value.Dict)
		if !ok {
			return nil, value.TypeError("if you give only one argument to maketrans it must be a dict")
		}
		for i, k := range d.Keys() {
			if s, ok := k.(string); ok {
				if value.RuneCount(s) != 1 {
					return nil, value.ValueError("string keys in translate table must be of length 1")
				}
				c, _ := utf8.DecodeRuneInString(s)
				k = int64(c)
			} else if _, ok := value.Integer(k); !ok {
				return nil, value.TypeError("keys in translate table must be strings or integers")
			}
			if err := table.Set(k, d.Values()[i]); err != nil {
				return nil, err
			}
		}
		return table, nil
	}
	x, err := value.NeedText(v[0], "maketrans argument 1")
	if err != nil {
		return nil, err
	}
	y, err := value.NeedText(v[1], "maketrans argument 2")
	if err != nil {
		return nil, err
	}
	from, to := []rune(x), []rune(y)
	if len(from) != len(to) {
		return nil, value.ValueError("the first two maketrans arguments must have equal length")
	}
	r.Work(2 * len(from)) // entries of a dict
	if err := r.Alloc(4 * len(from) * value.Overhead); err != nil {
		return nil, err
	}
	for i, c := range from {
		_ = table.Set(int64(c), int64(to[i]))
	}
	if v[2] != value.Missing {
		z, err := value.NeedText(v[2], "maketrans argument 3")
		if err != nil {
			return nil, err
		}
		for _, c := range z {
			_ = table.Set(int64(c), nil)
		}
	}
	return table, nil
}
