package quantize

import "math"

// pack encodes a multiple of 8 elements: each 8 are as many bytes as a code has bits.
func pack(dst []byte, w []uint32, scale, bias float32, bits int) {
	limit := uint64(1)<<bits - 1
	one, two, four := bits&63, 2*bits&63, 4*bits&63 // shifts by less than 64 are one instruction
	for ; len(w) >= 8; w, dst = w[8:], dst[bits:] {
		w := (*[8]uint32)(w)
		// Pairs, and pairs of pairs, do not wait for each other.
		c01 := code(w[0], scale, bias, limit) | code(w[1], scale, bias, limit)<<one
		c23 := code(w[2], scale, bias, limit) | code(w[3], scale, bias, limit)<<one
		c45 := code(w[4], scale, bias, limit) | code(w[5], scale, bias, limit)<<one
		c67 := code(w[6], scale, bias, limit) | code(w[7], scale, bias, limit)<<one
		putCodes(dst, c01|c23<<two|(c45|c67<<two)<<four, bits)
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

// putCodes writes the lowest bits bytes of codes.
func putCodes(dst []byte, codes uint64, bits int) {
	switch bits {
	case 2:
		le.PutUint16(dst, uint16(codes))
	case 3:
		le.PutUint16(dst, uint16(codes))
		dst[2] = uint8(codes >> 16)
	case 4:
		le.PutUint32(dst, uint32(codes))
	case 5:
		le.PutUint32(dst, uint32(codes))
		dst[4] = uint8(codes >> 32)
	case 6:
		le.PutUint32(dst, uint32(codes))
		le.PutUint16(dst[4:], uint16(codes>>32))
	case 8:
		le.PutUint64(dst, codes)
	}
}
