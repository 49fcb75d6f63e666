package quantize

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Cast converts the elements of src, of any type of this package, to BF16, F16 or F32, as the engine's astype does. It
// rounds to nearest, ties to even; overflow gives an infinity.
//
// Integers and F64 are converted through F32, so conversion to BF16 and F16 rounds twice. Integers up to 2^24, and
// values from BF16, F16 and F32, round at most once.
//
// NaN stays NaN. BF16 has one NaN, F16 one per sign; other types keep the payload and make it quiet.
func Cast(dst []byte, to DType, src []byte, from DType) error {
	switch {
	case !to.isTarget():
		return fmt.Errorf("%w: a cast gives BF16, F16 or F32, not %s", ErrDType, to)
	case from.Size() == 0:
		return fmt.Errorf("%w: %s cannot be cast", ErrDType, from)
	case len(src)%from.Size() != 0:
		return fmt.Errorf("%w: %d bytes are not a whole number of elements of %s", ErrLength, len(src), from)
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

// CastTo returns the cast that gives elements of type d; 0 if there is none.
func CastTo(d DType) Type {
	for _, t := range []Type{ToBF16, ToF16, ToF32} {
		if t.DType() == d {
			return t
		}
	}
	return 0
}

// Float32s returns elements as float32. Elements of other types than F32 must be finite, as for [ToF32].
func Float32s(src []byte, from DType) ([]float32, error) {
	wide := src
	if from != F32 {
		wide = make([]byte, len(src)/max(from.Size(), 1)*F32.Size())
		if err := ToF32.Encode(Blocks{Packed: wide}, src, from); err != nil {
			return nil, err
		}
	}
	out := make([]float32, len(wide)/F32.Size())
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(wide[F32.Size()*i:]))
	}
	return out, nil
}

// encodeCast is Cast for finite numbers that stay finite.
func (t Type) encodeCast(dst, src []byte, from DType) error {
	if err := Cast(dst, t.DType(), src, from); err != nil {
		return err
	}
	// A cast never makes an infinity or NaN finite, so checking the result finds both.
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

// CheckFinite returns an [ElementError] for the first NaN or infinity in src, whose elements have type d.
func CheckFinite(src []byte, d DType) error {
	if i := indexNotFinite(src, d); i >= 0 {
		return &ElementError{int64(i), valueAt(src, d, i), ErrNotFinite}
	}
	return nil
}

// indexNotFinite returns the index of the first NaN or infinity, or -1.
func indexNotFinite(src []byte, d DType) int {
	var exponents, ones uint64 // exponent masks for one word, and the lowest exponent bit of each element
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
	// An all-ones exponent carries into the sign bit.
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
