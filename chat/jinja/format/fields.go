package format

import (
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// Lookup reads what the fields of a format string name: attributes and items, as the sandbox allows.
type Lookup struct {
	Attr func(r *value.Run, obj value.Value, name string) (value.Value, error)
	Item func(r *value.Run, obj, key value.Value) (value.Value, error)
}

// Fields returns Python's s.format: it replaces the fields of s by the positional and named arguments.
func Fields(r *value.Run, s string, pos []value.Value, named value.Value, l Lookup) (string, error) {
	f := &fieldFormatter{r: r, pos: pos, named: named, read: l}
	return f.format(s, 2)
}

// fieldFormatter formats a format string. It reads attributes and items through the sandbox.
type fieldFormatter struct {
	r      *value.Run
	pos    []value.Value
	named  value.Value
	read   Lookup
	auto   int // next automatic field number
	manual bool
}

// format replaces the fields of s. depth is the remaining nesting of fields in format specifications.
func (f *fieldFormatter) format(s string, depth int) (string, error) {
	if depth < 0 {
		return "", value.ValueError("Max string recursion exceeded")
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		if c != '{' && c != '}' {
			n := strings.IndexAny(s[i:], "{}")
			if n < 0 {
				n = len(s) - i
			}
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		if i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			i += 2
			continue
		}
		if c == '}' {
			return "", value.ValueError("Single '}' encountered in format string")
		}
		end, nested := i+1, 1
		for ; end < len(s); end++ {
			switch s[end] {
			case '{':
				nested++
			case '}':
				nested--
			}
			if nested == 0 {
				break
			}
		}
		if end >= len(s) {
			if end == i+1 {
				return "", value.ValueError("Single '{' encountered in format string")
			}
			return "", value.ValueError("expected '}' before end of string")
		}
		t, err := f.field(s[i+1:end], depth)
		if err != nil {
			return "", err
		}
		b.WriteString(t)
		if err := f.r.Alloc(len(t)); err != nil {
			return "", err
		}
		i = end + 1
	}
	return b.String(), f.r.Alloc(b.Len())
}

func (f *fieldFormatter) field(s string, depth int) (string, error) {
	f.r.Work(4)
	if err := f.r.Tick(); err != nil {
		return "", err
	}
	name, spec, conv := s, "", byte(0)
	open := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '[':
			open = true
		case s[i] == ']':
			open = false
		case open:
		case s[i] == '{':
			return "", value.ValueError("unexpected '{' in field name")
		case s[i] == ':' || s[i] == '!':
			name = s[:i]
			rest := s[i:]
			if rest[0] == '!' {
				if len(rest) < 2 {
					return "", value.ValueError("end of string while looking for conversion specifier")
				}
				conv = rest[1]
				if rest = rest[2:]; rest != "" && rest[0] != ':' {
					return "", value.ValueError("expected ':' after conversion specifier")
				}
			}
			spec = strings.TrimPrefix(rest, ":")
			i = len(s)
		}
	}
	v, err := f.lookup(name)
	if err != nil {
		return "", err
	}
	if conv != 0 {
		if v, err = convert(f.r, v, conv); err != nil {
			return "", err
		}
	}
	if spec, err = f.format(spec, depth-1); err != nil {
		return "", err
	}
	return format(f.r, v, spec)
}

// convert returns str(v), repr(v) or ascii(v).
func convert(r *value.Run, v value.Value, how byte) (string, error) {
	switch how {
	case 's':
		return r.Str(v)
	case 'r':
		return r.Repr(v)
	case 'a':
		t, err := r.Repr(v)
		return asciiRepr(t), err
	}
	return "", value.ValueError("Unknown conversion specifier %c", how)
}

// asciiRepr escapes non-ASCII characters.
func asciiRepr(s string) string {
	if value.IsASCII(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if c < utf8.RuneSelf {
			b.WriteRune(c)
		} else {
			b.WriteString(value.QuoteEscape(c))
		}
	}
	return b.String()
}

// lookup returns the value of a field name such as "0.attr[item]".
func (f *fieldFormatter) lookup(name string) (value.Value, error) {
	first := name
	if i := strings.IndexAny(name, ".["); i >= 0 {
		first = name[:i]
	}
	rest := name[len(first):]
	var v value.Value
	switch n := decimal(first); {
	case first == "":
		if f.manual {
			return nil, value.ValueError("cannot switch from manual field specification to automatic field numbering")
		}
		n = f.auto
		f.auto++
		if n >= len(f.pos) {
			return nil, value.Raise("IndexError", "Replacement index %d out of range for positional args tuple", n)
		}
		v = f.pos[n]
	case n >= 0:
		if f.auto > 0 {
			return nil, value.ValueError("cannot switch from manual field specification to automatic field numbering")
		}
		f.manual = true
		if n >= len(f.pos) {
			return nil, value.Raise("IndexError", "Replacement index %d out of range for positional args tuple", n)
		}
		v = f.pos[n]
	default:
		var err error
		if v, err = f.r.Index(f.named, first); err != nil {
			return nil, err
		}
	}
	for rest != "" {
		err := f.r.Tick()
		if err != nil {
			return nil, err
		}
		if rest[0] == '.' {
			i := strings.IndexAny(rest[1:], ".[")
			if i < 0 {
				i = len(rest) - 1
			}
			if i == 0 {
				return nil, value.ValueError("Empty attribute in format string")
			}
			v, err = f.read.Attr(f.r, v, rest[1:1+i])
			rest = rest[1+i:]
		} else {
			i := strings.IndexByte(rest, ']')
			if i < 0 {
				return nil, value.ValueError("Missing ']' in format string")
			}
			if i == 1 {
				return nil, value.ValueError("Empty attribute in format string")
			}
			var key value.Value = rest[1:i]
			if n := decimal(rest[1:i]); n >= 0 {
				key = int64(n)
			}
			v, err = f.read.Item(f.r, v, key)
			if rest = rest[i+1:]; rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, value.ValueError("Only '.' or '[' may follow ']' in format field specifier")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// decimal returns the number that a string of digits represents; -1 if s is something else.
func decimal(s string) int {
	if s == "" || len(s) > 9 {
		return -1
	}
	n := 0
	for i := range len(s) {
		if !value.IsDigit(s[i]) {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
