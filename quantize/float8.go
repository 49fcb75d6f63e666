package quantize

import "math"

// toE4M3 rounds to the nearest E4M3 (FN: no infinities), ties to even. It saturates at 448, also for infinities and
// NaN.
func toE4M3(f float32) uint8 {
	b := math.Float32bits(f)
	sign := b >> 24 & 0x80
	b &= 0x7fffffff
	code := min((b+0x7ffff+b>>20&1)>>20-120<<3, 0x7e)
	// Subnormals, below 2^-6, have the spacing 2^-9. Float32 has that spacing around 2^14, so the sum rounds to it.
	subnormal := math.Float32bits(math.Float32frombits(b)+0x1p14) - 141<<23
	if b < 121<<23 {
		code = subnormal
	}
	return uint8(sign | code)
}

// e4m3 maps all codes to values. 0x7f and 0xff, NaN elsewhere, are 480 as in the engine.
var e4m3 = func() (table [256]float32) {
	for i := range table {
		exp, man := i>>3&15, float64(i&7)
		v := math.Ldexp(man, -9)
		if exp > 0 {
			v = math.Ldexp(8+man, exp-10)
		}
		if i >= 128 {
			v = -v
		}
		table[i] = float32(v)
	}
	return table
}()
