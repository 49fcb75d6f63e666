package format

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// formatSpec is Python's format specification (Format Specification Mini-Language, Python 3.11).
type formatSpec struct {
	fill      string
	align     byte // 0: depends on the type
	sign      byte
	alt       bool
	noNegZero bool
	width     int64
	group     byte
	precision int64 // -1: none
	verb      byte  // 0: none
}

func parseSpec(s string) (*formatSpec, error) {
	f := &formatSpec{fill: " ", precision: -1}
	isAlign := func(c byte) bool { return strings.IndexByte("<>=^", c) >= 0 }
	filled := false
	if _, n := utf8.DecodeRuneInString(s); s != "" && n < len(s) && isAlign(s[n]) {
		f.fill, f.align, s, filled = s[:n], s[n], s[n+1:], true
	} else if s != "" && isAlign(s[0]) {
		f.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = s[0], s[1:]
	}
	if s != "" && s[0] == 'z' {
		f.noNegZero, s = true, s[1:]
	}
	if s != "" && s[0] == '#' {
		f.alt, s = true, s[1:]
	}
	if s != "" && s[0] == '0' {
		if !filled {
			f.fill = "0"
		}
		if f.align == 0 {
			f.align = '='
		}
		s = s[1:]
	}
	number := func() (int64, error) {
		n := int64(0)
		for s != "" && value.IsDigit(s[0]) {
			if n = n*10 + int64(s[0]-'0'); n > math.MaxInt32 {
				return 0, value.ValueError("Too many decimal digits in format string")
			}
			s = s[1:]
		}
		return n, nil
	}
	var err error
	if f.width, err = number(); err != nil {
		return nil, err
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.group, s = s[0], s[1:]
		if s != "" && (s[0] == ',' || s[0] == '_') {
			return nil, value.ValueError("Cannot specify both ',' and '_'.")
		}
	}
	if s != "" && s[0] == '.' {
		s = s[1:]
		if s == "" || !value.IsDigit(s[0]) {
			return nil, value.ValueError("Format specifier missing precision")
		}
		if f.precision, err = number(); err != nil {
			return nil, err
		}
	}
	if len(s) > 1 {
		return nil, value.ValueError("Invalid format specifier")
	}
	if s != "" {
		f.verb = s[0]
	}
	return f, nil
}

// format returns Python's format(v, spec).
func format(r *value.Run, v value.Value, spec string) (string, error) {
	if spec == "" {
		return r.Str(v)
	}
	_, isText := v.(string)
	if !isText && !value.IsNumber(v) {
		return "", value.TypeError("unsupported format string passed to %s.__format__", value.TypeName(v))
	}
	f, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	if isText {
		return formatText(r, v, f)
	}
	if x, ok := v.(float64); ok {
		return formatFloatSpec(r, x, f)
	}
	n, _ := value.Integer(v)
	switch f.verb {
	case 0, 'd', 'n', 'b', 'o', 'x', 'X':
		if f.precision >= 0 {
			return "", value.ValueError("Precision not allowed in integer format specifier")
		}
		if f.noNegZero {
			return "", value.ValueError("Negative zero coercion (z) not allowed in format specifier with integer")
		}
		if f.group == ',' && f.verb != 0 && f.verb != 'd' || f.group == '_' && f.verb == 'n' {
			return "", value.ValueError("Cannot specify '%c' with '%c'.", f.group, f.verb)
		}
		return Int(r, n, f, -1)
	case 'c':
		if f.sign != 0 || f.alt || f.group != 0 || f.precision >= 0 {
			return "", value.ValueError("Sign not allowed with integer format specifier 'c'")
		}
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
			return "", value.Raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		if f.align == 0 {
			f.align = '<'
		} else if f.align == '=' {
			f.align = '>'
		}
		return align(r, string(rune(n.Int64())), f)
	}
	x, _, err := value.Float(value.NormInt(n))
	if err != nil {
		return "", err
	}
	return formatFloatSpec(r, x, f)
}

func formatText(r *value.Run, v value.Value, f *formatSpec) (string, error) {
	s, _ := v.(string)
	switch {
	case f.verb != 0 && f.verb != 's':
		return "", value.ValueError("Unknown format code '%c' for object of type 'str'", f.verb)
	case f.sign != 0:
		return "", value.ValueError("Sign not allowed in string format specifier")
	case f.alt:
		return "", value.ValueError("Alternate form (#) not allowed in string format specifier")
	case f.align == '=' && f.fill == "0":
		f.align = '<' // since Python 3.10, if the width has a leading zero
	case f.align == '=':
		return "", value.ValueError("'=' alignment not allowed in string format specifier")
	case f.group != 0:
		return "", value.ValueError("Cannot specify '%c' with 's'.", f.group)
	case f.noNegZero:
		return "", value.ValueError("Negative zero coercion (z) not allowed in string format specifier")
	}
	if f.precision >= 0 {
		s = value.Substring(s, 0, int(min(f.precision, int64(value.RuneCount(s)))))
	}
	return align(r, s, f)
}

func formatFloatSpec(r *value.Run, x float64, f *formatSpec) (string, error) {
	switch f.verb {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
	default:
		return "", value.ValueError("Unknown format code '%c' for object of type 'float'", f.verb)
	}
	if f.group != 0 && f.verb == 'n' {
		return "", value.ValueError("Cannot specify '%c' with 'n'.", f.group)
	}
	return formatFloat(r, x, f)
}
