package ggml

import "math"

// doubledE2M1 holds twice the value of each E2M1 code, so that all are integers; the scales are halved instead.
var doubledE2M1 = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func decodeMXFP4(dst []float32, b []byte) {
	d := halfE8M0(b[0])
	for i, q := range b[1:17] {
		dst[i] = d * doubledE2M1[q&15]
		dst[i+16] = d * doubledE2M1[q>>4]
	}
}

// halfE8M0 returns 2^(e-128). The smallest two are subnormal.
func halfE8M0(e byte) float32 {
	if e < 2 {
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func decodeNVFP4(dst []float32, b []byte) {
	for g := range 4 {
		d := halfUE4M3(b[g])
		for i, q := range b[4+g*8:][:8] {
			dst[g*16+i] = d * doubledE2M1[q&15]
			dst[g*16+8+i] = d * doubledE2M1[q>>4]
		}
	}
}

// halfUE4M3 returns half the value of an E4M3 number without its sign. Its NaN is 0, as in ggml.
func halfUE4M3(x byte) float32 {
	exponent, mantissa := x>>3&15, float32(x&7)
	switch {
	case x == 0x7f:
		return 0
	case exponent == 0:
		return mantissa / (1 << 10)
	}
	return (1 + mantissa/8) * float32(math.Ldexp(1, int(exponent)-8))
}
