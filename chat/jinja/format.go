package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// percent returns Python's s % args.
func (r *run) percent(s string, args Value) (Value, error) {
	var list []Value
	mapping, _ := args.(*Dict)
	single := false
	if t, ok := args.(*Tuple); ok {
		list = t.Items
	} else {
		list, single = []Value{args}, true
	}
	var b strings.Builder
	used := 0
	next := func() (Value, error) {
		if used == len(list) {
			return nil, typeError("not enough arguments for format string")
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
		spec := formatSpec{fill: " ", align: 0, precision: -1}
		keyed := false
		var arg Value
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
				return nil, valueError("incomplete format key")
			}
			if mapping == nil {
				return nil, typeError("format requires a mapping")
			}
			v, ok := mapping.Get(s[i+1 : j-1])
			if !ok {
				return nil, raise("KeyError", "%s", quote(s[i+1:j-1]))
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
				n, ok := smallInt(v)
				if !ok {
					return 0, typeError("* wants int")
				}
				return n, nil
			}
			n := int64(0)
			for ; i < len(s) && isDigit(s[i]); i++ {
				if n = n*10 + int64(s[i]-'0'); n > math.MaxInt32 {
					return 0, valueError("width too big")
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
			return nil, valueError("incomplete format")
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
		spec.align = '>'
		if left {
			spec.align, zero = '<', false
		}
		t, err := r.percentVerb(&spec, c, arg, zero)
		if err != nil {
			return nil, err
		}
		b.WriteString(t)
		if err := r.alloc(len(t)); err != nil {
			return nil, err
		}
	}
	if used < len(list) && mapping == nil {
		_, isList := args.(*List)
		if !single || !isList && !isMappingLike(args) {
			return nil, typeError("not all arguments converted during string formatting")
		}
	}
	if err := r.alloc(b.Len()); err != nil {
		return nil, err
	}
	return b.String(), nil
}

// isMappingLike reports whether % treats v as a mapping, so that unused arguments are allowed: v has items and is
// neither a string nor a tuple.
func isMappingLike(v Value) bool {
	switch v.(type) {
	case *Dict, *List, *Range, Bytes, *undefined:
		return true
	}
	return false
}

func (r *run) percentVerb(spec *formatSpec, c rune, v Value, zero bool) (string, error) {
	textual := func(t string) (string, error) {
		if spec.precision >= 0 {
			t = substring(t, 0, int(min(spec.precision, int64(runeCount(t)))))
		}
		return r.align(t, spec)
	}
	if zero {
		spec.fill, spec.align = "0", '='
	}
	switch c {
	case 's', 'r', 'a':
		spec.fill, spec.align = " ", map[bool]byte{true: '>', false: spec.align}[spec.align == '=']
		t, err := r.str(v)
		if c != 's' {
			t, err = r.repr(v)
		}
		if err != nil {
			return "", err
		}
		if c == 'a' {
			t = asciiRepr(t)
		}
		return textual(t)
	case 'c':
		spec.fill = " "
		spec.align = map[bool]byte{true: '>', false: spec.align}[spec.align == '=']
		if t, ok := v.(string); ok {
			if runeCount(t) != 1 {
				return "", typeError("%%c requires int or char")
			}
			return r.align(t, spec)
		}
		n, ok := smallInt(v)
		if !ok {
			return "", typeError("%%c requires int or char")
		}
		if n < 0 || n > utf8.MaxRune {
			return "", raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		return r.align(string(rune(n)), spec)
	case 'd', 'i', 'u', 'x', 'X', 'o':
		n, ok := integer(v)
		if !ok {
			f, isFloat := v.(float64)
			if !isFloat || c == 'x' || c == 'X' || c == 'o' {
				if u, ok := v.(*undefined); ok && (c == 'd' || c == 'i' || c == 'u') {
					return "", u.fail()
				}
				return "", typeError("%%%c format: a real number is required, not %s", c, typeName(v))
			}
			var err error
			if n, err = floatToInt(f); err != nil {
				return "", err
			}
		}
		spec.verb = 'd'
		if c == 'x' || c == 'X' || c == 'o' {
			spec.verb = byte(c)
		}
		digits := spec.precision
		spec.precision = -1
		return r.formatInt(n, spec, digits)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		f, ok, err := float(v)
		if err != nil {
			return "", err
		}
		if !ok {
			if u, ok := v.(*undefined); ok {
				return "", u.fail()
			}
			return "", typeError("must be real number, not %s", typeName(v))
		}
		spec.verb = byte(c)
		if spec.precision < 0 {
			spec.precision = 6
		}
		return r.formatFloat(f, spec)
	}
	return "", valueError("unsupported format character '%c'", c)
}

// asciiRepr escapes non-ASCII characters.
func asciiRepr(s string) string {
	if isASCII(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if c < utf8.RuneSelf {
			b.WriteRune(c)
		} else {
			b.WriteString(quoteEscape(c))
		}
	}
	return b.String()
}

func floatToInt(f float64) (*big.Int, error) {
	if math.IsNaN(f) {
		return nil, valueError("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, raise("OverflowError", "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n, nil
}

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
		for s != "" && isDigit(s[0]) {
			if n = n*10 + int64(s[0]-'0'); n > math.MaxInt32 {
				return 0, valueError("Too many decimal digits in format string")
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
			return nil, valueError("Cannot specify both ',' and '_'.")
		}
	}
	if s != "" && s[0] == '.' {
		s = s[1:]
		if s == "" || !isDigit(s[0]) {
			return nil, valueError("Format specifier missing precision")
		}
		if f.precision, err = number(); err != nil {
			return nil, err
		}
	}
	if len(s) > 1 {
		return nil, valueError("Invalid format specifier")
	}
	if s != "" {
		f.verb = s[0]
	}
	return f, nil
}

// align pads s to the width.
func (r *run) align(s string, f *formatSpec) (string, error) {
	how := map[byte]string{'<': "ljust", '>': "rjust", '^': "center", 0: "ljust"}[f.align]
	if how == "center" {
		n := max(f.width-int64(runeCount(s)), 0)
		l, err := r.repeat(f.fill, n/2)
		if err != nil {
			return "", err
		}
		s = l + s
		how = "ljust"
	}
	return r.pad(s, f.width, f.fill, how)
}

// number joins sign, prefix and digits, with grouping, zero padding after the sign, and alignment.
func (r *run) number(negative bool, prefix, whole, rest string, f *formatSpec) (string, error) {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case f.sign == '+':
		sign = "+"
	case f.sign == ' ':
		sign = " "
	}
	sign += prefix
	every := 3
	if f.verb == 'x' || f.verb == 'X' || f.verb == 'o' || f.verb == 'b' {
		every = 4
	}
	if f.group != 0 {
		if f.align == '=' && f.fill == "0" {
			room := f.width - int64(len(sign)+len(rest))
			if err := r.alloc(int(min(max(room, 0), math.MaxInt32))); err != nil {
				return "", err
			}
			for int64(len(whole)+(len(whole)-1)/every) < room {
				whole = "0" + whole
			}
		}
		whole = groupDigits(whole, f.group, every)
	}
	body := whole + rest
	if f.align == '=' {
		padded, err := r.pad(body, f.width-int64(len(sign)), f.fill, "rjust")
		return sign + padded, err
	}
	g := *f
	if g.align == 0 {
		g.align = '>'
	}
	return r.align(sign+body, &g)
}

func groupDigits(s string, sep byte, every int) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && (len(s)-i)%every == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// formatInt formats an integer by its verb. minDigits is the minimum number of digits, which only % supports.
func (r *run) formatInt(n *big.Int, f *formatSpec, minDigits int64) (string, error) {
	base, prefix := 10, ""
	switch f.verb {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	}
	if !f.alt {
		prefix = ""
	}
	abs := new(big.Int).Abs(n)
	if base == 10 {
		if _, err := bigText(abs); err != nil {
			return "", err
		}
	}
	s := abs.Text(base)
	if f.verb == 'X' {
		s = strings.ToUpper(s)
	}
	if minDigits > int64(len(s)) {
		var err error
		if s, err = r.pad(s, minDigits, "0", "rjust"); err != nil {
			return "", err
		}
	}
	return r.number(n.Sign() < 0, prefix, s, "", f)
}

// maxPrecision bounds the digits of a float. A float64 has at most 1074 digits after the point.
const maxPrecision = 5000

func (r *run) formatFloat(x float64, f *formatSpec) (string, error) {
	if f.precision > maxPrecision {
		return "", limitError("precision %d of a number exceeds %d", f.precision, maxPrecision)
	}
	negative := math.Signbit(x) && !math.IsNaN(x)
	abs := math.Abs(x)
	verb := f.verb
	upperCase := verb == 'E' || verb == 'F' || verb == 'G'
	percent := ""
	p := int(f.precision)
	if verb == '%' {
		abs *= 100
		percent, verb = "%", 'f'
		if p < 0 {
			p = 6
		}
	}
	var s string
	switch {
	case math.IsInf(abs, 0) || math.IsNaN(abs):
		s = floatRepr(abs)
	case verb == 'e' || verb == 'E' || verb == 'f' || verb == 'F':
		if p < 0 {
			p = 6
		}
		s = strconv.FormatFloat(abs, verb|0x20, p, 64)
		if f.alt && p == 0 {
			m, e, found := strings.Cut(s, "e")
			s = m + "."
			if found {
				s += "e" + e
			}
		}
	case verb == 0 && p < 0:
		s = floatRepr(abs)
	default: // g, n, or a precision without a verb
		if p < 0 {
			p = 6
		}
		s = general(abs, max(p, 1), f.alt, verb == 0)
	}
	if upperCase {
		s = strings.ToUpper(s)
	}
	if f.noNegZero && negative && strings.Trim(s, "0.") == "" {
		negative = false
	}
	whole, rest := s, ""
	if at := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }); at >= 0 {
		whole, rest = s[:at], s[at:]
	}
	if whole == "" { // inf, nan
		g := *f
		g.group = 0
		return r.number(negative, "", "", rest+percent, &g)
	}
	return r.number(negative, "", whole, rest+percent, f)
}

// general is the g format: p significant digits, an exponent if it is below -4 or at minDigits p, and no trailing zeros
// unless alt. Without a verb, a whole number keeps ".0", and an exponent of p-1 is also written.
func general(x float64, p int, alt, noVerb bool) string {
	s := strconv.FormatFloat(x, 'e', p-1, 64)
	at := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[at+1:])
	limit := p
	if noVerb {
		limit = p - 1
	}
	if x == 0 {
		exp = 0
	}
	if exp < -4 || exp >= p || noVerb && exp >= max(limit, 1) {
		m := s[:at]
		if !alt {
			m = trimZeros(m)
		} else if !strings.Contains(m, ".") {
			m += "."
		}
		return fmt.Sprintf("%se%+03d", m, exp)
	}
	s = strconv.FormatFloat(x, 'f', p-1-exp, 64)
	if alt {
		if !strings.Contains(s, ".") {
			s += "."
		}
		return s
	}
	s = trimZeros(s)
	if noVerb && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// format returns Python's format(v, spec).
func (r *run) format(v Value, spec string) (string, error) {
	if spec == "" {
		return r.str(v)
	}
	_, isText := v.(string)
	if !isText && !isNumber(v) {
		return "", typeError("unsupported format string passed to %s.__format__", typeName(v))
	}
	f, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	if isText {
		return r.formatText(v, f)
	}
	if x, ok := v.(float64); ok {
		return r.formatFloatSpec(x, f)
	}
	n, _ := integer(v)
	switch f.verb {
	case 0, 'd', 'n', 'b', 'o', 'x', 'X':
		if f.precision >= 0 {
			return "", valueError("Precision not allowed in integer format specifier")
		}
		if f.noNegZero {
			return "", valueError("Negative zero coercion (z) not allowed in format specifier with integer")
		}
		if f.group == ',' && f.verb != 0 && f.verb != 'd' || f.group == '_' && f.verb == 'n' {
			return "", valueError("Cannot specify '%c' with '%c'.", f.group, f.verb)
		}
		return r.formatInt(n, f, -1)
	case 'c':
		if f.sign != 0 || f.alt || f.group != 0 || f.precision >= 0 {
			return "", valueError("Sign not allowed with integer format specifier 'c'")
		}
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
			return "", raise("OverflowError", "%%c arg not in range(0x110000)")
		}
		if f.align == 0 {
			f.align = '<'
		} else if f.align == '=' {
			f.align = '>'
		}
		return r.align(string(rune(n.Int64())), f)
	}
	x, _, err := float(normInt(n))
	if err != nil {
		return "", err
	}
	return r.formatFloatSpec(x, f)
}

func (r *run) formatText(v Value, f *formatSpec) (string, error) {
	s, _ := v.(string)
	switch {
	case f.verb != 0 && f.verb != 's':
		return "", valueError("Unknown format code '%c' for object of type 'str'", f.verb)
	case f.sign != 0:
		return "", valueError("Sign not allowed in string format specifier")
	case f.alt:
		return "", valueError("Alternate form (#) not allowed in string format specifier")
	case f.align == '=' && f.fill == "0":
		f.align = '<' // since Python 3.10, if the width has a leading zero
	case f.align == '=':
		return "", valueError("'=' alignment not allowed in string format specifier")
	case f.group != 0:
		return "", valueError("Cannot specify '%c' with 's'.", f.group)
	case f.noNegZero:
		return "", valueError("Negative zero coercion (z) not allowed in string format specifier")
	}
	if f.precision >= 0 {
		s = substring(s, 0, int(min(f.precision, int64(runeCount(s)))))
	}
	return r.align(s, f)
}

func (r *run) formatFloatSpec(x float64, f *formatSpec) (string, error) {
	switch f.verb {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
	default:
		return "", valueError("Unknown format code '%c' for object of type 'float'", f.verb)
	}
	if f.group != 0 && f.verb == 'n' {
		return "", valueError("Cannot specify '%c' with 'n'.", f.group)
	}
	return r.formatFloat(x, f)
}
