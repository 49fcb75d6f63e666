package quantize

import (
	"math"
	"math/bits"
)

// mxExponent returns the exponent of a group's scale: the smallest power of two not below peak/largest, computed in the
// source's type, or 0 if that quotient is 0.
func mxExponent(peak, largest float32, from DType) int {
	b := math.Float32bits(from.Round(peak / largest))
	switch {
	case b == 0:
		return 0
	case b < 1<<23:
		return bits.Len32(b-1) - 149
	}
	return int((b+0x7fffff)>>23) - 127
}

// powerOf2 returns 2^exp: infinity from 128 on, exact from -149 on.
func powerOf2(exp int) float32 { return float32(math.Ldexp(1, exp)) }

// product returns a*b. Its NaN, from 0 times infinity, has x86-64's sign.
func product(a, b float32) float32 {
	p := a * b
	if p != p {
		return math.Float32frombits(defaultNaN)
	}
	return p
}

// Round rounds to a type that the engine computes in: to nearest, ties to even. Other types leave f as it is.
func (d DType) Round(f float32) float32 {
	switch d {
	case BF16:
		return roundBF16(f)
	case F16:
		return roundF16(f)
	}
	return f
}

// smallExponent bounds the scale below which elements that are subnormal, before or after division by the scale, may
// matter. Above it they are far below the smallest code, and the division is exact for all others.
const smallExponent = -100

// encodeMX encodes whole groups of mxfp4 and mxfp8. The caller has checked the lengths.
func (t Type) encodeMX(dst Blocks, src []byte, from DType) error {
	var w block
	size, largest := t.GroupSizes(from), float32(6)
	if t == MXFP8 {
		largest = 448
	}
	for g := range len(src) / size.Source {
		group := src[g*size.Source:][:size.Source]
		lo, hi := from.load(&w, group)
		if !finite(lo, hi) {
			return notFinite(group, from, g*t.Group())
		}
		exp := mxExponent(math.Float32frombits(max(lo&^signBit, hi&^signBit)), largest, from)
		dst.Scales[g] = uint8(exp + 127)
		packed := dst.Packed[g*size.Packed:][:size.Packed]
		switch {
		case exp < smallExponent:
			t.divideMX(packed, w[:t.Group()], powerOf2(exp), from)
		case t == MXFP4:
			packE2M1(packed, w[:t.Group()], exp)
		default:
			packE4M3(packed, w[:t.Group()], math.Float32frombits(uint32(127-exp)<<23))
		}
	}
	return nil
}

// divideMX is the reference implementation.
func (t Type) divideMX(dst []byte, w []uint32, scale float32, from DType) {
	for i, b := range w {
		x := from.Round(math.Float32frombits(b) / scale)
		switch {
		case t == MXFP8:
			dst[i] = toE4M3(x)
		case i&1 == 0:
			dst[i/2] = nearestE2M1(x)
		default:
			dst[i/2] |= nearestE2M1(x) << 4
		}
	}
}

func packE4M3(dst []byte, w []uint32, factor float32) {
	dst = dst[:len(w)]
	for i, b := range w {
		dst[i] = toE4M3(math.Float32frombits(b) * factor)
	}
}

// decodeMXFP8 decodes whole groups, computing in the target type.
func decodeMXFP8(dst []byte, to DType, src Blocks) {
	var (
		values [32]float32
		size   = MXFP8.GroupSizes(to)
		width  = to.Size() * len(values)
	)
	for ; len(dst) > 0; dst, src = dst[width:], src.after(size) {
		scale := to.Round(powerOf2(int(src.Scales[0]) - 127))
		for i, c := range src.Packed[:size.Packed] {
			values[i&31] = product(e4m3[c], scale)
		}
		to.store(dst, values[:])
	}
}
