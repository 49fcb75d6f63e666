package quantize

import "math"

// The conversions are our own because github.com/x448/float16 branches on each number's kind: on weights with zeros and
// subnormals it takes four times as long (BenchmarkF16). The library is the oracle of the tests.

// Rounding to F16 adds 2^13 times the number's binade: around that sum, float32 has the spacing of F16 in the number's
// binade, and the lowest bits of the sum are the F16 mantissa. Below 2^-14, F16 has the spacing of the next binade.
const (
	f16Binade  = 113 << 23 // bits of 2^-14
	f16Counter = 13 << 23
)

// toF16 rounds to nearest, ties to even. Values from 65520 on become infinities. NaN keeps its sign.
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
			h = 0x7d00 // the engine's NaN
		}
	}
	return uint16(sign | h)
}

// fromF16 is exact. NaN keeps its sign and payload and becomes quiet. It selects instead of branching because zeros and
// subnormals are common and unpredictable.
func fromF16(h uint16) float32 {
	sign, b := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	// Exponent and mantissa have float32's positions; the factor corrects the exponent bias.
	f := math.Float32bits(math.Float32frombits(b) * 0x1p112)
	if b >= 0x7c00<<13 {
		f = b | infBits
	}
	if b > 0x7c00<<13 {
		f |= 1 << 22
	}
	return math.Float32frombits(sign | f)
}

// roundF16 rounds to F16 precision.
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
