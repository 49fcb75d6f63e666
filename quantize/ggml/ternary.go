package ggml

// The ternary types: digits 0, 1 and 2 for -1, 0 and 1 times one float16 scale for 256 elements.

var powers = [5]byte{1, 3, 9, 27, 81}

func decodeTQ1_0(dst []float32, b []byte) {
	d := half(b[52:])
	for i := range dst {
		dst[i] = d * float32(int(digitTQ1(b, i))-1)
	}
}

// digitTQ1 returns digit i of a TQ1_0 block. A byte holds 5 digits (in the last 4 bytes, 4) as a fraction of 256: thus
// multiplying it by a power of three drops the digits before, and the next one is the byte above 256 of three times the
// rest. Digit k of the first 32 bytes is that of elements 32k to 32k+31, and so on for the next 16 and the last 4.
func digitTQ1(b []byte, i int) byte {
	switch {
	case i < 160:
		b, i = b[i%32:], i/32
	case i < 240:
		b, i = b[32+(i-160)%16:], (i-160)/16
	default:
		b, i = b[48+(i-240)%4:], (i-240)/4
	}
	return byte(uint16(b[0]*powers[i]) * 3 >> 8)
}

func decodeTQ2_0(dst []float32, b []byte) {
	d := half(b[64:])
	for i := range dst {
		dst[i] = d * float32(int(digitTQ2(b, i))-1)
	}
}

// digitTQ2 returns digit i of a TQ2_0 block, which has the layout of codes of 2 bits in the K types.
func digitTQ2(b []byte, i int) byte { return b[i/128*32+i%32] >> (i / 32 % 4 * 2) & 3 }
