package builtin

import (
	"math"
	"math/big"
	"strconv"

	"github.com/ingotml/ingot/chat/jinja/value"
)

func filterAbs(r *value.Run, v []value.Value) (value.Value, error) {
	if f, ok := v[0].(float64); ok {
		return math.Abs(f), nil
	}
	i, ok := value.Integer(v[0])
	if !ok {
		return nil, value.TypeError("bad operand type for abs(): '%s'", value.TypeName(v[0]))
	}
	return value.NormInt(new(big.Int).Abs(i)), nil
}

func filterFloat(r *value.Run, v []value.Value) (value.Value, error) {
	f, err := toFloat(r, v[0])
	if value.IsKind(err, "TypeError", "ValueError") {
		return value.Optional(v[1], 0.0), nil
	}
	return f, err
}

func filterInt(r *value.Run, v []value.Value) (value.Value, error) {
	n, err := toInt(r, v[0], value.Optional(v[2], int64(10)))
	if !value.IsKind(err, "TypeError", "ValueError") {
		return n, err
	}
	f, err := toFloat(r, v[0])
	if err == nil {
		var i *big.Int
		if i, err = value.FloatToInt(f); err == nil {
			return value.NormInt(i), nil
		}
	}
	if value.IsKind(err, "TypeError", "ValueError", "OverflowError") {
		return value.Optional(v[1], int64(0)), nil
	}
	return nil, err
}

func filterRound(r *value.Run, v []value.Value) (value.Value, error) {
	method := value.Optional(v[2], "common")
	name, _ := method.(string)
	precision := value.Optional(v[1], int64(0))
	switch name {
	case "common":
		return round(r, v[0], precision)
	case "ceil", "floor":
	default:
		return nil, value.Raise("FilterArgumentError", "method must be common, ceil or floor")
	}
	scale, err := r.Binary("**", int64(10), precision)
	if err != nil {
		return nil, err
	}
	x, err := r.Binary("*", v[0], scale)
	if err != nil {
		return nil, err
	}
	if f, ok := x.(float64); ok {
		if f = math.Floor(f); name == "ceil" {
			f = math.Ceil(x.(float64))
		}
		i, err := value.FloatToInt(f)
		if err != nil {
			return nil, err
		}
		x = value.NormInt(i)
	}
	if !value.IsNumber(x) {
		return nil, value.TypeError("must be real number, not %s", value.TypeName(x))
	}
	return r.Binary("/", x, scale)
}

// round returns Python's round(v, n): half to even, based on the exact value.
func round(r *value.Run, v, n value.Value) (value.Value, error) {
	if u, ok := v.(*value.Undefined); ok {
		return nil, u.Fail()
	}
	if !value.IsNumber(v) {
		return nil, value.TypeError("type %s doesn't define __round__ method", value.TypeName(v))
	}
	if n == nil {
		if f, ok := v.(float64); ok {
			i, err := value.FloatToInt(math.RoundToEven(f))
			if err != nil {
				return nil, err
			}
			return value.NormInt(i), nil
		}
		n = int64(0)
	}
	digits, err := value.ClampInt(n)
	if err != nil {
		return nil, err
	}
	if f, ok := v.(float64); ok {
		switch {
		case math.IsInf(f, 0) || math.IsNaN(f) || digits > 323:
			return f, nil
		case digits < -308:
			return math.Copysign(0, f), nil
		case digits >= 0:
			x, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64)
			return x, nil
		}
		exact, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64))
		exact.SetFloat64(f)
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
		exact.Quo(exact, new(big.Rat).SetInt(scale))
		q := divideRound(exact.Num(), exact.Denom())
		x, _ := new(big.Float).SetInt(q.Mul(q, scale)).Float64()
		if math.IsInf(x, 0) {
			return nil, value.Raise("OverflowError", "rounded value too large to represent")
		}
		if x == 0 {
			x = math.Copysign(0, f)
		}
		return x, nil
	}
	i, _ := value.Integer(v)
	if digits >= 0 {
		return value.NormInt(i), nil
	}
	if -digits > int64(i.BitLen())/3+1 { // more than twice the number
		return int64(0), nil
	}
	if err := r.Square(4*i.BitLen(), i.BitLen()); err != nil {
		return nil, err
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(-digits), nil)
	q := divideRound(i, scale)
	return value.NormInt(q.Mul(q, scale)), nil
}

// divideRound divides and rounds to an integer, half to even. d is positive.
func divideRound(n, d *big.Int) *big.Int {
	q, m := new(big.Int).DivMod(n, d, new(big.Int))
	switch m.Lsh(m, 1).Cmp(d) {
	case 1:
		q.Add(q, big.NewInt(1))
	case 0:
		q.Add(q, new(big.Int).And(q, big.NewInt(1)))
	}
	return q
}
