package quantize

import "math"

// toBF16 rounds to nearest, ties to even. Every NaN becomes the same NaN.
func toBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&^signBit > infBits {
		return 0x7fc0
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// roundBF16 rounds to BF16 precision.
func roundBF16(f float32) float32 { return fromBF16(toBF16(f)) }
