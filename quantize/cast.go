package quantize

import (
	"fmt"
	"math"
)

// Cast writes the elements of src as another type: BF16, F16 or F32 from any type of this package, as the engine's astype
// does. Numbers are rounded to the nearest, ties to even; those too large become infinities.
//
// Integers and F64 go through F32, so that they are rounded twice on the way to BF16 and F16. Integers up to 2^24, and
// everything that comes from BF16, F16 and F32, are rounded once at most.
//
// NaN stays NaN: of one value in BF16, of one value and its sign in F16; elsewhere payloads are kept and made quiet.
func Cast(dst []byte, to DType, src []byte, from DType) error {
	switch {
	case !to.isTarget():
		return fmt.Errorf("%w: a cast gives BF16, F16 or F32, not %s", ErrDType, to)
	case from.Size() == 0:
		return fmt.Errorf("%w: %s cannot be cast", ErrDType, from)
	case len(src)%from.Size() != 0:
		return fmt.Errorf("%w: %d bytes are no whole number of elements of %s", ErrLength, len(src), from)
	case len(dst)/to.Size() != len(src)/from.Size() || len(dst)%to.Size() != 0:
		return fmt.Errorf("%w: %d bytes for %d elements of %s", ErrLength, len(dst), len(src)/from.Size(), to)
	case from == to:
		copy(dst, src)
		return nil
	}
	var values [256]float32
	for len(src) > 0 {
		n := min(len(values), len(src)/from.Size())
		from.widen(values[:n], src)
		to.store(dst, values[:n])
		dst, src = dst[n*to.Size():], src[n*from.Size():]
	}
	return nil
}

// encodeCast is Cast, for finite numbers that stay finite.
func (t Type) encodeCast(dst, src []byte, from DType) error {
	if err := Cast(dst, t.DType(), src, from); err != nil {
		return err
	}
	// What is not finite stays so.
	i := indexNotFinite(dst, t.DType())
	if i < 0 {
		return nil
	}
	v := valueAt(src, from, i)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return &ElementError{int64(i), v, ErrNotFinite}
	}
	return &ElementError{int64(i), v, fmt.Errorf("%w for %s", ErrOverflow, t.DType())}
}

// CheckFinite returns an [ElementError] for the first NaN or infinity among elements of type d, a type that [Cast] reads.
func CheckFinite(src []byte, d DType) error {
	if i := indexNotFinite(src, d); i >= 0 {
		return &ElementError{int64(i), valueAt(src, d, i), ErrNotFinite}
	}
	return nil
}

// indexNotFinite returns -1 where all elements are finite.
func indexNotFinite(src []byte, d DType) int {
	var exponents, ones uint64 // masks of the exponent fields of a word, and a one at the end of each
	switch d {
	case BF16:
		exponents, ones = 0x7f807f807f807f80, 0x0080008000800080
	case F16:
		exponents, ones = 0x7c007c007c007c00, 0x0400040004000400
	case F32:
		exponents, ones = 0x7f8000007f800000, 0x0080000000800000
	case F64:
		exponents, ones = 0x7ff0000000000000, 0x0010000000000000
	default:
		return -1
	}
	// A field of all ones carries into the place of the sign.
	carries := (exponents + ones) &^ exponents
	i := 0
	for ; i+8 <= len(src); i += 8 {
		if (le.Uint64(src[i:])&exponents+ones)&carries != 0 {
			break
		}
	}
	for k := i / d.Size(); k < len(src)/d.Size(); k++ {
		if v := valueAt(src, d, k); math.IsNaN(v) || math.IsInf(v, 0) {
			return k
		}
	}
	return -1
}

// valueAt returns element i.
func valueAt(src []byte, d DType, i int) float64 {
	src = src[i*d.Size():]
	switch d {
	case F64:
		return math.Float64frombits(le.Uint64(src))
	case I64:
		return float64(int64(le.Uint64(src)))
	case U64:
		return float64(le.Uint64(src))
	case I32:
		return float64(int32(le.Uint32(src)))
	case U32:
		return float64(le.Uint32(src))
	}
	var v [1]float32
	d.widen(v[:], src)
	return float64(v[0])
}
