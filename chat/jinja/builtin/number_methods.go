package builtin

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/ingotml/ingot/chat/jinja/value"
)

// numberAttr returns an attribute of an int, bool or float.
func numberAttr(v value.Value, name string) (value.Value, bool, error) {
	constant := func(fn func() (value.Value, error)) (value.Value, bool, error) {
		return &value.Builtin{Name: name, Fn: func(r *value.Run, a *value.Arguments) (value.Value, error) {
			if _, err := a.Bind(name); err != nil {
				return nil, err
			}
			return fn()
		}}, true, nil
	}
	if f, ok := v.(float64); ok {
		switch name {
		case "real":
			return f, true, nil
		case "imag":
			return 0.0, true, nil
		case "conjugate":
			return constant(func() (value.Value, error) { return f, nil })
		case "is_integer":
			return constant(func() (value.Value, error) { return f == math.Trunc(f) && !math.IsInf(f, 0), nil })
		case "hex":
			return constant(func() (value.Value, error) { return floatHex(f), nil })
		case "as_integer_ratio":
			return constant(func() (value.Value, error) {
				if math.IsNaN(f) {
					return nil, value.ValueError("cannot convert NaN to integer ratio")
				}
				if math.IsInf(f, 0) {
					return nil, value.Raise("OverflowError", "cannot convert Infinity to integer ratio")
				}
				q := new(big.Rat)
				q.SetFloat64(f)
				return value.NewTuple(value.NormInt(q.Num()), value.NormInt(q.Denom())), nil
			})
		}
		return nil, false, nil
	}
	i, ok := value.Integer(v)
	if !ok {
		return nil, false, nil
	}
	n := value.NormInt(i)
	switch name {
	case "real", "numerator":
		return n, true, nil
	case "imag":
		return int64(0), true, nil
	case "denominator":
		return int64(1), true, nil
	case "conjugate":
		return constant(func() (value.Value, error) { return n, nil })
	case "bit_length":
		return constant(func() (value.Value, error) { return int64(i.BitLen()), nil })
	case "bit_count":
		return constant(func() (value.Value, error) {
			return int64(strings.Count(new(big.Int).Abs(i).Text(2), "1")), nil
		})
	case "as_integer_ratio":
		return constant(func() (value.Value, error) { return value.NewTuple(n, int64(1)), nil })
	}
	return nil, false, nil
}

// floatHex is Python's float.hex.
func floatHex(f float64) string {
	switch {
	case math.IsInf(f, 0) || math.IsNaN(f):
		return value.FloatRepr(f)
	case f == 0:
		if math.Signbit(f) {
			return "-0x0.0p+0"
		}
		return "0x0.0p+0"
	}
	m, e := math.Frexp(math.Abs(f))
	m, e = m*2, e-1
	if e < -1022 { // subnormal
		m, e = math.Ldexp(m, e+1022), -1022
	}
	whole := math.Floor(m)
	frac := uint64(math.Ldexp(m-whole, 52))
	sign := ""
	if f < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s0x%s.%013xp%+d", sign, strconv.Itoa(int(whole)), frac, e)
}
