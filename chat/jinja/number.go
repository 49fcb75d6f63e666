package jinja

import (
	"math"
	"math/big"
)

// normInt returns an int64 if b fits, otherwise b.
func normInt(b *big.Int) Value {
	if b.IsInt64() {
		return b.Int64()
	}
	return b
}

// integer returns v as an integer if it is an int or bool.
func integer(v Value) (*big.Int, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case int64:
		return big.NewInt(v), true
	case *big.Int:
		return v, true
	}
	return nil, false
}

// smallInt returns v as an int64 if it is an integer that fits.
func smallInt(v Value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// clampInt returns an index. It clamps integers to the range of int64 and rejects other types.
func clampInt(v Value) (int64, error) {
	if i, ok := smallInt(v); ok {
		return i, nil
	}
	if b, ok := v.(*big.Int); ok {
		if b.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	return 0, typeError("'%s' object cannot be interpreted as an integer", typeName(v))
}

// float returns v as a float if it is a number. An integer out of range is an OverflowError.
func float(v Value) (float64, bool, error) {
	switch v := v.(type) {
	case float64:
		return v, true, nil
	case int64:
		return float64(v), true, nil
	case bool:
		if v {
			return 1, true, nil
		}
		return 0, true, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			return 0, true, raise("OverflowError", "int too large to convert to float")
		}
		return f, true, nil
	}
	return 0, false, nil
}

func isNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}

func unsupported(op string, l, r Value) error {
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(l), typeName(r))
}

// binary returns Python's a op b, except for % of a string, which is a method of str.
func (r *run) binary(op string, a, b Value) (Value, error) {
	if u, ok := a.(*undefined); ok {
		return nil, u.fail()
	}
	if u, ok := b.(*undefined); ok {
		return nil, u.fail()
	}
	if isNumber(a) && isNumber(b) {
		return r.arith(op, a, b)
	}
	switch op {
	case "+":
		return r.add(a, b)
	case "*":
		return r.multiply(a, b)
	}
	return nil, unsupported(op, a, b)
}

func (r *run) add(a, b Value) (Value, error) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			if err := r.alloc(len(x) + len(y)); err != nil {
				return nil, err
			}
			return x + y, nil
		}
		return nil, typeError("can only concatenate str (not \"%s\") to str", typeName(b))
	case Bytes:
		if y, ok := b.(Bytes); ok {
			s, err := r.join([]string{string(x), string(y)}, "")
			return Bytes(s), err
		}
	case *List:
		if y, ok := b.(*List); ok {
			items, err := r.concat(x.Items, y.Items)
			return &List{items}, err
		}
		return nil, typeError("can only concatenate list (not \"%s\") to list", typeName(b))
	case *Tuple:
		if y, ok := b.(*Tuple); ok {
			items, err := r.concat(x.Items, y.Items)
			return &Tuple{Items: items}, err
		}
		return nil, typeError("can only concatenate tuple (not \"%s\") to tuple", typeName(b))
	}
	return nil, unsupported("+", a, b)
}

func (r *run) concat(a, b []Value) ([]Value, error) {
	if err := r.alloc((len(a) + len(b)) * valueSize); err != nil {
		return nil, err
	}
	return append(append(make([]Value, 0, len(a)+len(b)), a...), b...), nil
}

// multiply repeats a sequence.
func (r *run) multiply(a, b Value) (Value, error) {
	seq, times := a, b
	if isNumber(a) {
		seq, times = b, a
	}
	if _, ok := integer(times); !ok {
		switch seq.(type) {
		case string, *List, *Tuple, Bytes:
			return nil, typeError("can't multiply sequence by non-int of type '%s'", typeName(times))
		}
		return nil, unsupported("*", a, b)
	}
	n, ok := smallInt(times)
	if !ok {
		return nil, raise("OverflowError", "cannot fit 'int' into an index-sized integer")
	}
	n = max(n, 0)
	switch s := seq.(type) {
	case string:
		t, err := r.repeat(s, n)
		return t, err
	case Bytes:
		t, err := r.repeat(string(s), n)
		return Bytes(t), err
	case *List:
		items, err := r.repeatItems(s.Items, n)
		return &List{items}, err
	case *Tuple:
		items, err := r.repeatItems(s.Items, n)
		return &Tuple{Items: items}, err
	}
	return nil, unsupported("*", a, b)
}

func (r *run) repeat(s string, n int64) (string, error) {
	if err := r.allocTimes(len(s), n); err != nil {
		return "", err
	}
	b := make([]byte, 0, len(s)*int(n)*min(1, len(s)))
	for ; n > 0 && s != ""; n-- {
		b = append(b, s...)
	}
	return string(b), nil
}

func (r *run) repeatItems(items []Value, n int64) ([]Value, error) {
	if err := r.allocTimes(len(items)*valueSize, n); err != nil {
		return nil, err
	}
	var all []Value
	for ; n > 0 && len(items) > 0; n-- {
		all = append(all, items...)
	}
	return all, nil
}

// arith computes with numbers: exactly with integers, in float64 if an operand or the result is a float.
func (r *run) arith(op string, a, b Value) (Value, error) {
	x, okX := smallInt(a)
	y, okY := smallInt(b)
	if okX && okY {
		if v, ok, err := smallArith(op, x, y); ok || err != nil {
			return v, err
		}
	}
	i, okI := integer(a)
	j, okJ := integer(b)
	if okI && okJ {
		return r.bigArith(op, i, j)
	}
	f, _, err := float(a)
	if err != nil {
		return nil, err
	}
	g, _, err := float(b)
	if err != nil {
		return nil, err
	}
	return floatArith(op, f, g)
}

func smallArith(op string, x, y int64) (Value, bool, error) {
	switch op {
	case "+":
		if s := x + y; (s > x) == (y > 0) {
			return s, true, nil
		}
	case "-":
		if s := x - y; (s < x) == (y > 0) {
			return s, true, nil
		}
	case "*":
		if x == 0 || y == 0 {
			return int64(0), true, nil
		}
		if p := x * y; p/y == x && !(x == -1 && y == math.MinInt64) && !(y == -1 && x == math.MinInt64) {
			return p, true, nil
		}
	case "//", "%":
		if y == 0 {
			return nil, false, raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		if x == math.MinInt64 && y == -1 {
			return nil, false, nil
		}
		q, m := x/y, x%y
		if m != 0 && (m < 0) != (y < 0) {
			q, m = q-1, m+y
		}
		if op == "%" {
			return m, true, nil
		}
		return q, true, nil
	case "/":
		if y == 0 {
			return nil, false, raise("ZeroDivisionError", "division by zero")
		}
		if x > -1<<53 && x < 1<<53 && y > -1<<53 && y < 1<<53 {
			return float64(x) / float64(y), true, nil
		}
	}
	return nil, false, nil
}

// maxBits bounds the size of integers.
const maxBits = 1 << 20

func (r *run) bigArith(op string, a, b *big.Int) (Value, error) {
	if err := r.alloc((a.BitLen() + b.BitLen()) / 8); err != nil {
		return nil, err
	}
	if a.BitLen()+b.BitLen() > 4*maxBits {
		return nil, limitError("integer is too long")
	}
	switch op {
	case "+":
		return normInt(new(big.Int).Add(a, b)), nil
	case "-":
		return normInt(new(big.Int).Sub(a, b)), nil
	case "*":
		r.work(a.BitLen() / 64 * b.BitLen() / 64 / 32)
		return normInt(new(big.Int).Mul(a, b)), nil
	case "/":
		if b.Sign() == 0 {
			return nil, raise("ZeroDivisionError", "division by zero")
		}
		f, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(f, 0) {
			return nil, raise("OverflowError", "integer division result too large for a float")
		}
		return f, nil
	case "//", "%":
		if b.Sign() == 0 {
			return nil, raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		r.work(a.BitLen() / 64 * b.BitLen() / 64 / 32)
		q, m := new(big.Int).QuoRem(a, b, new(big.Int))
		if m.Sign() != 0 && m.Sign() != b.Sign() {
			q.Sub(q, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			return normInt(m), nil
		}
		return normInt(q), nil
	}
	return r.power(a, b)
}

func (r *run) power(a, b *big.Int) (Value, error) {
	if b.Sign() < 0 {
		if a.Sign() == 0 {
			return nil, raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		f, _, err := float(normInt(a))
		if err != nil {
			return nil, err
		}
		g, _, err := float(normInt(b))
		if err != nil {
			return nil, err
		}
		return floatArith("**", f, g)
	}
	if a.BitLen() <= 1 { // 0, 1, -1
		if b.Sign() == 0 || a.Sign() > 0 || a.Sign() < 0 && b.Bit(0) == 0 {
			return int64(1), nil
		}
		return normInt(new(big.Int).Set(a)), nil
	}
	if !b.IsInt64() || b.Int64() > maxBits || int64(a.BitLen())*b.Int64() > maxBits {
		return nil, limitError("integer is too long")
	}
	bits := a.BitLen() * int(b.Int64())
	r.work(bits / 64 * bits / 64 / 32)
	return normInt(new(big.Int).Exp(a, b, nil)), nil
}

func floatArith(op string, f, g float64) (Value, error) {
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "/":
		if g == 0 {
			return nil, raise("ZeroDivisionError", "float division by zero")
		}
		return f / g, nil
	case "//", "%":
		if g == 0 {
			return nil, raise("ZeroDivisionError", "float floor division by zero")
		}
		q, m := floatDivmod(f, g)
		if op == "%" {
			return m, nil
		}
		return q, nil
	}
	return floatPower(f, g)
}

// floatDivmod is CPython's float_divmod: the remainder has the sign of the divisor.
func floatDivmod(f, g float64) (float64, float64) {
	m := math.Mod(f, g)
	d := (f - m) / g
	if m != 0 {
		if (g < 0) != (m < 0) {
			m += g
			d--
		}
	} else {
		m = math.Copysign(0, g)
	}
	if d == 0 {
		return math.Copysign(0, f/g), m
	}
	q := math.Floor(d)
	if d-q > 0.5 {
		q++
	}
	return q, m
}

func floatPower(f, g float64) (Value, error) {
	if f == 0 && g < 0 {
		return nil, raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if f < 0 && !math.IsInf(f, 0) && g != math.Trunc(g) && !math.IsNaN(g) {
		return nil, typeError("complex numbers are not supported")
	}
	v := pow(f, g)
	if math.IsInf(v, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		return nil, raise("OverflowError", "(34, 'Numerical result out of range')")
	}
	return v, nil
}

// pow returns x to the power of y, almost always correctly rounded, as C libraries do. math.Pow is off by a few ULPs.
func pow(x, y float64) float64 {
	v := math.Pow(x, y)
	if v == 0 || v == 1 || math.IsInf(v, 0) || math.IsNaN(v) || math.IsInf(y, 0) ||
		math.Abs(v) < 0x1p-1000 || math.Abs(v) > 0x1p1000 {
		return v
	}
	// y is n / 2^k: take k square roots, then the n-th power.
	m, e := math.Frexp(math.Abs(y))
	n := uint64(math.Ldexp(m, 53))
	k := 53 - e
	for ; n&1 == 0 && k > 0; k-- {
		n >>= 1
	}
	if k < 0 || k > 120 {
		return v
	}
	const precision = 320
	base := new(big.Float).SetPrec(precision).SetFloat64(math.Abs(x))
	for range k {
		base.Sqrt(base)
	}
	result := new(big.Float).SetPrec(precision).SetInt64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, base)
		}
		base.Mul(base, base)
	}
	if y < 0 {
		result.Quo(new(big.Float).SetPrec(precision).SetInt64(1), result)
	}
	exact, _ := result.Float64()
	return math.Copysign(exact, v)
}

// unary returns Python's +v or -v.
func (r *run) unary(op byte, v Value) (Value, error) {
	switch x := v.(type) {
	case *undefined:
		return nil, x.fail()
	case float64:
		if op == '-' {
			return -x, nil
		}
		return x, nil
	}
	i, ok := integer(v)
	if !ok {
		return nil, typeError("bad operand type for unary %c: '%s'", op, typeName(v))
	}
	if op == '-' {
		return normInt(new(big.Int).Neg(i)), nil
	}
	return normInt(i), nil
}
