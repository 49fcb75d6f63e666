package value

import (
	"math"
	"math/big"
)

// arith computes with numbers: exactly with integers, in float64 if an operand or the result is a float.
func (r *Run) arith(op string, a, b Value) (Value, error) {
	x, okX := SmallInt(a)
	y, okY := SmallInt(b)
	if okX && okY {
		if v, ok, err := smallArith(op, x, y); ok || err != nil {
			return v, err
		}
	}
	i, okI := Integer(a)
	j, okJ := Integer(b)
	if okI && okJ {
		return r.bigArith(op, i, j)
	}
	f, _, err := Float(a)
	if err != nil {
		return nil, err
	}
	g, _, err := Float(b)
	if err != nil {
		return nil, err
	}
	if op == "**" {
		r.Work(powerSteps)
	}
	return floatArith(op, f, g)
}

// powerSteps is the cost of a power of floats, which is computed with 320 bits.
const powerSteps = 1000

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
			return nil, false, Raise("ZeroDivisionError", "integer division or modulo by zero")
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
			return nil, false, Raise("ZeroDivisionError", "division by zero")
		}
		if x > -1<<53 && x < 1<<53 && y > -1<<53 && y < 1<<53 {
			return float64(x) / float64(y), true, nil
		}
	}
	return nil, false, nil
}

// MaxBits bounds the size of integers.
const MaxBits = 1 << 20

func (r *Run) bigArith(op string, a, b *big.Int) (Value, error) {
	if err := r.Alloc((a.BitLen() + b.BitLen()) / 8); err != nil {
		return nil, err
	}
	if a.BitLen()+b.BitLen() > 4*MaxBits {
		return nil, LimitError("integer is too long")
	}
	switch op {
	case "+":
		return NormInt(new(big.Int).Add(a, b)), nil
	case "-":
		return NormInt(new(big.Int).Sub(a, b)), nil
	case "*":
		if err := r.Square(a.BitLen(), b.BitLen()); err != nil {
			return nil, err
		}
		return NormInt(new(big.Int).Mul(a, b)), nil
	case "/":
		if b.Sign() == 0 {
			return nil, Raise("ZeroDivisionError", "division by zero")
		}
		both := a.BitLen() + b.BitLen() // the fraction is reduced
		if err := r.Square(4*both, both); err != nil {
			return nil, err
		}
		f, _ := new(big.Rat).SetFrac(a, b).Float64()
		if math.IsInf(f, 0) {
			return nil, Raise("OverflowError", "integer division result too large for a float")
		}
		return f, nil
	case "//", "%":
		if b.Sign() == 0 {
			return nil, Raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		if err := r.Square(a.BitLen(), b.BitLen()); err != nil {
			return nil, err
		}
		q, m := new(big.Int).QuoRem(a, b, new(big.Int))
		if m.Sign() != 0 && m.Sign() != b.Sign() {
			q.Sub(q, big.NewInt(1))
			m.Add(m, b)
		}
		if op == "%" {
			return NormInt(m), nil
		}
		return NormInt(q), nil
	}
	return r.power(a, b)
}

func (r *Run) power(a, b *big.Int) (Value, error) {
	if b.Sign() < 0 {
		if a.Sign() == 0 {
			return nil, Raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		f, _, err := Float(NormInt(a))
		if err != nil {
			return nil, err
		}
		g, _, err := Float(NormInt(b))
		if err != nil {
			return nil, err
		}
		r.Work(powerSteps)
		return floatArith("**", f, g)
	}
	if a.BitLen() <= 1 { // 0, 1, -1
		if b.Sign() == 0 || a.Sign() > 0 || a.Sign() < 0 && b.Bit(0) == 0 {
			return int64(1), nil
		}
		return NormInt(new(big.Int).Set(a)), nil
	}
	if !b.IsInt64() || b.Int64() > MaxBits || int64(a.BitLen())*b.Int64() > MaxBits {
		return nil, LimitError("integer is too long")
	}
	bits := a.BitLen() * int(b.Int64())
	if err := r.Square(bits, bits); err != nil {
		return nil, err
	}
	return NormInt(new(big.Int).Exp(a, b, nil)), nil
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
			return nil, Raise("ZeroDivisionError", "float division by zero")
		}
		return f / g, nil
	case "//", "%":
		if g == 0 {
			return nil, Raise("ZeroDivisionError", "float floor division by zero")
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
		return nil, Raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if f < 0 && !math.IsInf(f, 0) && g != math.Trunc(g) && !math.IsNaN(g) {
		return nil, TypeError("complex numbers are not supported")
	}
	v := pow(f, g)
	if math.IsInf(v, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		return nil, Raise("OverflowError", "(34, 'Numerical result out of range')")
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
