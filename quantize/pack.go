package quantize

import "math"

// span is the number of elements packed at a time: a whole number of words in every format.
const span = 32

// pack encodes a multiple of span elements.
func pack(dst []byte, w []uint32, scale, bias float32, bits int) {
	for ; len(w) >= span; w, dst = w[span:], dst[span/8*bits:] {
		s := (*[span]uint32)(w)
		switch bits {
		case 2:
			pack2(dst, s, scale, bias)
		case 3:
			pack3(dst, s, scale, bias)
		case 4:
			pack4(dst, s, scale, bias)
		case 5:
			pack5(dst, s, scale, bias)
		case 6:
			pack6(dst, s, scale, bias)
		case 8:
			pack8(dst, s, scale, bias)
		}
	}
}

// code returns (w-bias)/scale rounded to nearest, ties to even. It is never negative: the bias is the end from which
// the scale points inwards, or is 0 and every quotient rounds to 0. It may exceed limit.
//
// Adding 1.5*2^23 leaves the nearest integer of a small number in the lowest bits.
func code(w uint32, scale, bias float32, limit uint64) uint64 {
	n := float32((math.Float32frombits(w)-bias)/scale) + 0x1.8p23
	return min(uint64(math.Float32bits(n)&0xffff), limit)
}

// The packers are written out because constant shifts in one pass over the elements are twice as fast.

func pack2(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 3) | code(w[1], s, b, 3)<<2 | code(w[2], s, b, 3)<<4 | code(w[3], s, b, 3)<<6 |
			code(w[4], s, b, 3)<<8 | code(w[5], s, b, 3)<<10 | code(w[6], s, b, 3)<<12 | code(w[7], s, b, 3)<<14
		le.PutUint16(dst[2*i:], uint16(v))
	}
}

func pack3(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 7) | code(w[1], s, b, 7)<<3 | code(w[2], s, b, 7)<<6 | code(w[3], s, b, 7)<<9 |
			code(w[4], s, b, 7)<<12 | code(w[5], s, b, 7)<<15 | code(w[6], s, b, 7)<<18 | code(w[7], s, b, 7)<<21
		le.PutUint16(dst[3*i:], uint16(v))
		dst[3*i+2] = uint8(v >> 16)
	}
}

func pack4(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 15) | code(w[1], s, b, 15)<<4 | code(w[2], s, b, 15)<<8 | code(w[3], s, b, 15)<<12 |
			code(w[4], s, b, 15)<<16 | code(w[5], s, b, 15)<<20 | code(w[6], s, b, 15)<<24 | code(w[7], s, b, 15)<<28
		le.PutUint32(dst[4*i:], uint32(v))
	}
}

func pack5(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 31) | code(w[1], s, b, 31)<<5 | code(w[2], s, b, 31)<<10 | code(w[3], s, b, 31)<<15 |
			code(w[4], s, b, 31)<<20 | code(w[5], s, b, 31)<<25 | code(w[6], s, b, 31)<<30 | code(w[7], s, b, 31)<<35
		le.PutUint32(dst[5*i:], uint32(v))
		dst[5*i+4] = uint8(v >> 32)
	}
}

func pack6(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 63) | code(w[1], s, b, 63)<<6 | code(w[2], s, b, 63)<<12 | code(w[3], s, b, 63)<<18 |
			code(w[4], s, b, 63)<<24 | code(w[5], s, b, 63)<<30 | code(w[6], s, b, 63)<<36 | code(w[7], s, b, 63)<<42
		le.PutUint32(dst[6*i:], uint32(v))
		le.PutUint16(dst[6*i+4:], uint16(v>>32))
	}
}

func pack8(dst []byte, w *[span]uint32, s, b float32) {
	for i := 0; i < span/8; i++ {
		w := (*[8]uint32)(w[8*i:])
		v := code(w[0], s, b, 255) | code(w[1], s, b, 255)<<8 | code(w[2], s, b, 255)<<16 | code(w[3], s, b, 255)<<24 |
			code(w[4], s, b, 255)<<32 | code(w[5], s, b, 255)<<40 | code(w[6], s, b, 255)<<48 | code(w[7], s, b, 255)<<56
		le.PutUint64(dst[8*i:], v)
	}
}
