package format

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// align pads s to the width.
func align(r *value.Run, s string, f *formatSpec) (string, error) {
	how := map[byte]string{'<': "ljust", '>': "rjust", '^': "center", 0: "ljust"}[f.align]
	if how == "center" {
		n := max(f.width-int64(value.RuneCount(s)), 0)
		l, err := r.Repeat(f.fill, n/2)
		if err != nil {
			return "", err
		}
		s = l + s
		how = "ljust"
	}
	return Pad(r, s, f.width, f.fill, how)
}

// number joins sign, prefix and digits, with grouping, zero padding after the sign, and alignment.
func number(r *value.Run, negative bool, prefix, whole, rest string, f *formatSpec) (string, error) {
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
			if err := r.Alloc(int(min(max(room, 0), math.MaxInt32))); err != nil {
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
		padded, err := Pad(r, body, f.width-int64(len(sign)), f.fill, "rjust")
		return sign + padded, err
	}
	g := *f
	if g.align == 0 {
		g.align = '>'
	}
	return align(r, sign+body, &g)
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

// Int formats an integer by its verb. minDigits is the minimum number of digits, which only % supports.
func Int(r *value.Run, n *big.Int, f *formatSpec, minDigits int64) (string, error) {
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
		if _, err := value.BigText(abs); err != nil {
			return "", err
		}
	}
	s := abs.Text(base)
	if f.verb == 'X' {
		s = strings.ToUpper(s)
	}
	if minDigits > int64(len(s)) {
		var err error
		if s, err = Pad(r, s, minDigits, "0", "rjust"); err != nil {
			return "", err
		}
	}
	return number(r, n.Sign() < 0, prefix, s, "", f)
}

// maxPrecision bounds the digits of a float. A float64 has at most 1074 digits after the point.
const maxPrecision = 5000

func formatFloat(r *value.Run, x float64, f *formatSpec) (string, error) {
	if f.precision > maxPrecision {
		return "", value.LimitError("precision %d of a number exceeds %d", f.precision, maxPrecision)
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
		s = value.FloatRepr(abs)
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
		s = value.FloatRepr(abs)
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
		return number(r, negative, "", "", rest+percent, &g)
	}
	return number(r, negative, "", whole, rest+percent, f)
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

// Pad pads s to a width.
func Pad(r *value.Run, s string, width int64, fill, how string) (string, error) {
	n := width - int64(value.RuneCount(s))
	if n <= 0 {
		return s, nil
	}
	left, right := int64(0), n
	switch how {
	case "rjust":
		left, right = n, 0
	case "center":
		left = n/2 + n&width&1
		right = n - left
	}
	l, err := r.Repeat(fill, left)
	if err != nil {
		return "", err
	}
	rr, err := r.Repeat(fill, right)
	if err != nil {
		return "", err
	}
	return r.Join([]string{l, s, rr}, "")
}
