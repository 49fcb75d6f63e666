package value

import (
	"math"
	"math/big"
)

// FloatToInt returns Python's int(f).
func FloatToInt(f float64) (*big.Int, error) {
	if math.IsNaN(f) {
		return nil, ValueError("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, Raise("OverflowError", "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n, nil
}

// NormInt returns an int64 if b fits, otherwise b.
func NormInt(b *big.Int) Value {
	if b.IsInt64() {
		return b.Int64()
	}
	return b
}

// Integer returns v as an integer if it is an int or bool.
func Integer(v Value) (*big.Int, bool) {
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

// SmallInt returns v as an int64 if it is an integer that fits.
func SmallInt(v Value) (int64, bool) {
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

// ClampInt returns an index. It clamps integers to the range of int64 and rejects other types.
func ClampInt(v Value) (int64, error) {
	if i, ok := SmallInt(v); ok {
		return i, nil
	}
	if b, ok := v.(*big.Int); ok {
		if b.Sign() < 0 {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	return 0, TypeError("'%s' object cannot be interpreted as an integer", TypeName(v))
}

// Float returns v as a float if it is a number. An integer out of range is an OverflowError.
func Float(v Value) (float64, bool, error) {
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
			return 0, true, Raise("OverflowError", "int too large to convert to float")
		}
		return f, true, nil
	}
	return 0, false, nil
}

// IsNumber reports whether v is an int, bool or float.
func IsNumber(v Value) bool {
	switch v.(type) {
	case bool, int64, *big.Int, float64:
		return true
	}
	return false
}
