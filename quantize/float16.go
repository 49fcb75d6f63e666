package quantize

import "math"

// The functions of this file select instead of branching: zeros and subnormals are common, and in no order.

// toF16 rounds to the nearest, ties to even, and to an infinity from 65520 on. NaN becomes a NaN of the same sign.
func toF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := b >> 16 & 0x8000
	b &^= signBit
	h := (b - 112<<23 + 0xfff + b>>13&1) >> 13
	// Subnormals, below 2^-14, are 2^-24 apart, as are numbers around 0.5, which the sum rounds to.
	subnormal := math.Float32bits(math.Float32frombits(b)+0.5) - 0x3f000000
	if b < 0x38800000 {
		h = subnormal
	}
	if h > 0x7c00 {
		h = 0x7c00
		if b > infBits {
			h = 0x7d00 // as the engine has it
		}
	}
	return uint16(sign | h)
}

// fromF16 is exact. NaN keeps its sign and payload and becomes quiet.
func fromF16(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	// Exponent and mantissa are where float32 has them; its exponents are from another zero.
	f := math.Float32bits(math.Float32frombits(b) * 0x1p112)
	if b >= 0x7c00<<13 {
		f = b | infBits
	}
	if b > 0x7c00<<13 {
		f |= 1 << 22
	}
	return math.Float32frombits(sign | f)
}

// roundF16 is toF16 and back.
func roundF16(f float32) float32 {
	b := math.Float32bits(f)
	sign := b & signBit
	b &^= signBit
	r := (b + 0xfff + b>>13&1) &^ 0x1fff
	subnormal := math.Float32bits(math.Float32frombits(b) + 0.5 - 0.5)
	if b < 0x38800000 {
		r = subnormal
	}
	if r > 0x477fe000 {
		r = infBits
		if b > infBits {
			r = 0x7fe00000
		}
	}
	return math.Float32frombits(sign | r)
}
