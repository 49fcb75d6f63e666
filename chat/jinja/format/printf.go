package format

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// Percent returns Python's s % args.
func Percent(r *value.Run, s string, args value.Value) (value.Value, error) {
	var list []value.Value
	mapping, _ := args.(*value.Dict)
	single := false
	if t, ok := args.(*value.Tuple); ok {
		list = t.Items
	} else {
		list, single = []value.Value{args}, true
	}
	var b strings.Builder
	used := 0
	next := func() (value.Value, error) {
		if used == len(list) {
			return nil, value.TypeError("not enough arguments for format string")
		}
		used++
		return list[used-1], nil
	}
	for i := 0; i < len(s); {
		at := strings.IndexByte(s[i:], '%')
		if at < 0 {
			b.WriteString(s[i:])
			break
		}
		b.WriteString(s[i : i+at])
		i += at + 1
		r.Work(4)
		if err := r.Tick(); err != nil {
			return nil, err
		}
		spec := formatSpec{fill: " ", align: 0, precision: -1}
		keyed := false
		var arg value.Value
		if i < len(s) && s[i] == '(' {
			depth, j := 1, i+1
			for ; j < len(s) && depth > 0; j++ {
				switch s[j] {
				case '(':
					depth++
				case ')':
					depth--
				}
			}
			if depth > 0 {
				return nil, value.ValueError("incomplete format key")
			}
			if mapping == nil {
				return nil, value.TypeError("format requires a mapping")
			}
			v, ok := mapping.Get(s[i+1 : j-1])
			if !ok {
				return nil, value.Raise("KeyError", "%s", value.Quote(s[i+1:j-1]))
			}
			arg, keyed = v, true
			i = j
		}
		left, zero := false, false
		for ; i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0; i++ {
			switch s[i] {
			case '-':
				left = true
			case '+':
				spec.sign = '+'
			case ' ':
				if spec.sign == 0 {
					spec.sign = ' '
				}
			case '#':
				spec.alt = true
			case '0':
				zero = true
			}
		}
		number := func() (int64, error) {
			if i < len(s) && s[i] == '*' {
				i++
				v, err := next()
				if err != nil {
					return 0, err
				}
				n, ok := value.SmallInt(v)
				if !ok {
					return 0, value.TypeError("* wants int")
				}
				return n, nil
			}
			n := int64(0)
			for ; i < len(s) && value.IsDigit(s[i]); i++ {
				if n = n*10 + int64(s[i]-'0'); n > math.MaxInt32 {
					return 0, value.ValueError("width too big")
				}
			}
			return n, nil
		}
		var err error
		if spec.width, err = number(); err != nil {
			return nil, err
		}
		if spec.width < 0 {
			left, spec.width = true, -spec.width
		}
		if i < len(s) && s[i] == '.' {
			i++
			if spec.precision, err = number(); err != nil {
				return nil, err
			}
			spec.precision = max(spec.precision, 0)
		}
		for i < len(s) && strings.IndexByte("hlL", s[i]) >= 0 {
			i++
		}
		if i == len(s) {
			return nil, value.ValueError("incomplete format")
		}
		c, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if c == '%' && s[i-2] == '%' {
			b.WriteByte('%')
			continue
		}
		if !keyed {
			if arg, err = next(); err != nil {
				return nil, err
			}
		}
		switch {
		case left:
			spec.align = '<'
		case zero:
			spec.fill, spec.align = "0", '='
		default:
			spec.align = '>'
		}
		t, err := percentVerb(r, &spec, c, arg)
		if err != nil {
			return nil, err
		}
		b.WriteString(t)
		if err := r.Alloc(len(t)); err != nil {
			return nil, err
		}
	}
	if used < len(list) && mapping == nil {
		_, isList := args.(*value.List)
		if !single || !isList && !isMappingLike(args) {
			return nil, value.TypeError("not all arguments converted during string formatting")
		}
	}
	if err := r.Alloc(b.Len()); err != nil {
		return nil, err
	}
	return b.String(), nil
}

// isMappingLike reports whether % treats v as a mapping, so that unused arguments are allowed: v has items and is
// neither a string nor a tuple.
func isMappingLike(v value.Value) bool {
	switch v.(type) {
	case *value.Dict, *value.List, *value.Range, *value.Undefined:
		return true
	}
	return false
}

// percentVerb formats a value as the same verb of a format specification does. Text has neither sign nor zeros.
func percentVerb(r *value.Run, f *formatSpec, c rune, v value.Value) (string, error) {
	if strings.ContainsRune("srac", c) {
		f.sign, f.alt, f.fill = 0, false, " "
		if f.align == '=' {
			f.align = '>'
		}
		t, err := percentText(r, f, c, v)
		if err != nil {
			return "", err
		}
		return formatText(r, t, f)
	}
	if u, ok := v.(*value.Undefined); ok {
		return "", u.Fail()
	}
	switch c {
	case 'd', 'i', 'u', 'x', 'X', 'o':
		n, ok := value.Integer(v)
		if x, isFloat := v.(float64); isFloat && strings.ContainsRune("diu", c) {
			var err error
			if n, err = value.FloatToInt(x); err != nil {
				return "", err
			}
		} else if !ok {
			return "", value.TypeError("%%%c format: a real number is required, not %s", c, value.TypeName(v))
		}
		f.verb = byte(c)
		return Int(r, n, f, f.precision)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		x, ok, err := value.Float(v)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", value.TypeError("must be real number, not %s", value.TypeName(v))
		}
		f.verb = byte(c)
		return formatFloat(r, x, f)
	}
	return "", value.ValueError("unsupported format character '%c'", c)
}

// percentText returns the text of a value for %s, %r and %a, and the character for %c.
func percentText(r *value.Run, f *formatSpec, c rune, v value.Value) (string, error) {
	if c != 'c' {
		return convert(r, v, byte(c))
	}
	f.precision = -1
	if t, ok := v.(string); ok && value.RuneCount(t) == 1 {
		return t, nil
	}
	n, ok := value.SmallInt(v)
	if !ok {
		return "", value.TypeError("%%c requires int or char")
	}
	if n < 0 || n > utf8.MaxRune {
		return "", value.Raise("OverflowError", "%%c arg not in range(0x110000)")
	}
	return string(rune(n)), nil
}
