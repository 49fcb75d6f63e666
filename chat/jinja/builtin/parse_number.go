package builtin

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"unicode"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// toFloat returns Python's float(v).
func toFloat(r *value.Run, v value.Value) (float64, error) {
	if u, ok := v.(*value.Undefined); ok {
		return 0, u.Fail()
	}
	if s, ok := v.(string); ok {
		return parseFloat(s)
	}
	f, ok, err := value.Float(v)
	if !ok {
		return 0, value.TypeError("float() argument must be a string or a real number, not '%s'", value.TypeName(v))
	}
	return f, err
}

func parseFloat(s string) (float64, error) {
	t := strings.TrimFunc(asciiDigits(s), value.IsSpace)
	bad := value.ValueError("could not convert string to float: %s", value.Quote(s))
	for i := range len(t) {
		if t[i] == '_' && (i == 0 || i+1 == len(t) || !value.IsDigit(t[i-1]) || !value.IsDigit(t[i+1])) {
			return 0, bad
		}
	}
	t = strings.ReplaceAll(t, "_", "")
	if strings.ContainsAny(t, "xXpP") {
		return 0, bad
	}
	f, err := strconv.ParseFloat(t, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, bad
	}
	return f, nil
}

// asciiDigits replaces decimal digits of other scripts by ASCII digits.
func asciiDigits(s string) string {
	if value.IsASCII(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		if d := digitValue(c); d >= 0 {
			return rune('0' + d)
		}
		return c
	}, s)
}

// toInt returns Python's int(v, base). base only applies to strings.
func toInt(r *value.Run, v, base value.Value) (value.Value, error) {
	switch x := v.(type) {
	case *value.Undefined:
		return nil, x.Fail()
	case float64:
		i, err := value.FloatToInt(x)
		if err != nil {
			return nil, err
		}
		return value.NormInt(i), nil
	case string:
		b, err := value.ClampInt(base)
		if err != nil {
			return nil, err
		}
		return parseInt(r, x, b)
	}
	i, ok := value.Integer(v)
	if !ok {
		return nil, value.TypeError("int() argument must be a string, a bytes-like object or a real number, not '%s'",
			value.TypeName(v))
	}
	return value.NormInt(i), nil
}

func parseInt(r *value.Run, s string, base int64) (value.Value, error) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, value.ValueError("int() base must be >= 2 and <= 36, or 0")
	}
	bad := value.ValueError("invalid literal for int() with base %d: %s", base, value.Quote(s))
	t := strings.TrimFunc(asciiDigits(s), value.IsSpace)
	sign := ""
	if t != "" && (t[0] == '+' || t[0] == '-') {
		sign, t = t[:1], t[1:]
	}
	if len(t) > 1 && t[0] == '0' {
		want := map[byte]int64{'x': 16, 'o': 8, 'b': 2}[t[1]|0x20]
		if want != 0 && (base == want || base == 0) {
			base, t = want, strings.TrimPrefix(t[2:], "_")
			if t == "" {
				return nil, bad
			}
		}
	}
	if base == 0 {
		base = 10
		if len(t) > 1 && t[0] == '0' && strings.Trim(t, "0_") != "" {
			return nil, bad
		}
	}
	if t == "" || t[0] == '_' || t[len(t)-1] == '_' || strings.Contains(t, "__") || t[0] == '+' || t[0] == '-' {
		return nil, bad
	}
	t = strings.ReplaceAll(t, "_", "")
	if len(t) > value.MaxDigits && base&(base-1) != 0 {
		return nil, value.ValueError("Exceeds the limit (%d digits) for integer string conversion", value.MaxDigits)
	}
	if len(t) > value.MaxBits/bits.Len64(uint64(base-1)) {
		return nil, value.LimitError("integer is too long")
	}
	if err := r.Square(8*len(t), 8*len(t)); err != nil {
		return nil, err
	}
	i, ok := new(big.Int).SetString(sign+t, int(base))
	if !ok {
		return nil, bad
	}
	return value.NormInt(i), nil
}

// digitValue returns the value of a decimal digit of any script; -1 if c is not one.
func digitValue(c rune) int {
	if !unicode.IsDigit(c) {
		return -1
	}
	// Unicode's decimal digits come in contiguous runs of ten, from 0 to 9.
	n := 0
	for n < 9 && unicode.IsDigit(c-1) {
		c, n = c-1, n+1
	}
	return n
}
