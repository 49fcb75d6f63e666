package quantize

import "math"

// Rounding to F16 adds a number 2^13 times the binade of the one to be rounded: such numbers are as far apart as those of F16
// are in the binade, and the sum counts them in its lowest bits. Below 2^-14 F16 is as in the next binade.
const (
	f16Binade  = 113 << 23 // bits of 2^-14
	f16Counter = 13 << 23
)

// toF16 rounds to the nearest, ties to even, and to an infinity from 65520 on. NaN becomes a NaN of the same sign.
func toF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := b >> 16 & 0x8000
	b &^= signBit
	binade := max(b&infBits, f16Binade)
	sum := math.Float32bits(math.Float32frombits(b) + math.Float32frombits(binade+f16Counter))
	h := (binade-f16Binade)>>13 + sum&0xfff
	if b >= 0x47800000 { // 2^16
		h = 0x7c00
		if b > infBits {
			h = 0x7d00 // as the engine has it
		}
	}
	return uint16(sign | h)
}

// fromF16 is exact. NaN keeps its sign and payload and becomes quiet. It selects instead of branching: zeros and subnormals
// are common, and in no order.
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
	counter := math.Float32frombits(max(b&infBits, f16Binade) + f16Counter)
	r := math.Float32bits(math.Float32frombits(b) + counter - counter)
	if r > 0x477fe000 {
		r = infBits
		if b > infBits {
			r = 0x7fe00000
		}
	}
	return math.Float32frombits(sign | r)
}
