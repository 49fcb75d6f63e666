package quantize

import (
	"encoding/binary"
	"math"
)

var le = binary.LittleEndian

// block holds one group of any size as float32 bits.
type block [128]uint32

// load reads one group, a multiple of 16 elements, and returns its minimum and maximum as float32 bits. It does not
// distinguish -0 and 0. NaN and infinities order beyond all numbers, on the side of their sign.
func (d DType) load(dst *block, src []byte) (lo, hi uint32) {
	if hasAVX2 {
		return d.loadAVX2(dst, src)
	}
	return d.loadGo(dst, src)
}

// loadGo is the reference implementation.
func (d DType) loadGo(dst *block, src []byte) (lo, hi uint32) {
	switch d {
	case BF16:
		return loadBF16(dst, src)
	case F16:
		return loadF16(dst, src)
	}
	return loadF32(dst, src)
}

func (d DType) loadAVX2(dst *block, src []byte) (lo, hi uint32) {
	n := min(len(src)/d.Size(), len(dst)) &^ 7
	if n == 0 {
		return 0, 0
	}
	switch d {
	case BF16:
		return ends(loadBF16AVX2(&dst[0], &src[0], n))
	case F16:
		signed, unsigned, nearest := loadF16AVX2(&dst[0], &src[0], n)
		return ends(upperF16(signed), upperF16(unsigned), upperF16(nearest))
	}
	return ends(loadF32AVX2(&dst[0], &src[0], n))
}

// upperF16 converts the F16 in the upper half of a word.
func upperF16(h uint32) uint32 { return math.Float32bits(fromF16(uint16(h >> 16))) }

const (
	signBit = 1 << 31
	infBits = 0x7f800000
)

// finite reports whether the ends from a loader belong to a group without NaN and infinities.
func finite(lo, hi uint32) bool { return lo&^signBit < infBits && hi&^signBit < infBits }

// ends returns a group's minimum and maximum. As integers, float bits order correctly except among negative numbers,
// whose order is reversed. The signed and unsigned maxima are therefore the largest and the smallest float. In a group
// of one sign, one of them is wrong, and that end is the float nearest to zero.
func ends(signed, unsigned, nearest uint32) (lo, hi uint32) {
	switch {
	case signed >= signBit:
		return unsigned, nearest
	case unsigned < signBit:
		return nearest, signed
	}
	return unsigned, signed
}

// nearest returns the smallest bits. Groups with both signs do not need them.
func nearest(group []uint32, signed, unsigned uint32) uint32 {
	n := unsigned
	if signed >= signBit || unsigned < signBit {
		for _, b := range group {
			n = min(n, b)
		}
	}
	return n
}

func loadBF16(dst *block, src []byte) (lo, hi uint32) {
	signed, unsigned := int32(math.MinInt32), uint32(0)
	n := min(len(src)/2, len(dst))
	for i := 0; i+4 <= n; i += 4 {
		v := le.Uint64(src[2*i:])
		a, b, c, d := uint32(v)<<16, uint32(v)&0xffff0000, uint32(v>>32)<<16, uint32(v>>32)&0xffff0000
		w := (*[4]uint32)(dst[i:])
		w[0], w[1], w[2], w[3] = a, b, c, d
		signed = max(signed, max(max(int32(a), int32(b)), max(int32(c), int32(d))))
		unsigned = max(unsigned, max(max(a, b), max(c, d)))
	}
	return ends(uint32(signed), unsigned, nearest(dst[:n], uint32(signed), unsigned))
}

func loadF16(dst *block, src []byte) (lo, hi uint32) {
	signed, unsigned := int32(math.MinInt32), uint32(0)
	n := min(len(src)/2, len(dst))
	for i := 0; i+4 <= n; i += 4 {
		v := le.Uint64(src[2*i:])
		a, b, c, d := uint32(v)<<16, uint32(v)&0xffff0000, uint32(v>>32)<<16, uint32(v>>32)&0xffff0000
		w := (*[4]uint32)(dst[i:])
		w[0], w[1], w[2], w[3] = widenF16(a), widenF16(b), widenF16(c), widenF16(d)
		signed = max(signed, max(max(int32(a), int32(b)), max(int32(c), int32(d))))
		unsigned = max(unsigned, max(max(a, b), max(c, d)))
	}
	hi, lo = upperF16(uint32(signed)), upperF16(unsigned)
	return ends(hi, lo, nearest(dst[:n], hi, lo))
}

// widenF16 is fromF16 for finite numbers in the upper half of a word, without a branch: it moves sign, exponent and
// mantissa to float32's positions, which gives the number divided by 2^112, subnormal or not.
func widenF16(h uint32) uint32 {
	return math.Float32bits(math.Float32frombits(uint32(int32(h)>>3)&0x8fffe000) * 0x1p112)
}

func loadF32(dst *block, src []byte) (lo, hi uint32) {
	signed, unsigned := int32(math.MinInt32), uint32(0)
	n := min(len(src)/4, len(dst))
	for i := 0; i+4 <= n; i += 4 {
		v, u := le.Uint64(src[4*i:]), le.Uint64(src[4*i+8:])
		a, b, c, d := uint32(v), uint32(v>>32), uint32(u), uint32(u>>32)
		w := (*[4]uint32)(dst[i:])
		w[0], w[1], w[2], w[3] = a, b, c, d
		signed = max(signed, max(max(int32(a), int32(b)), max(int32(c), int32(d))))
		unsigned = max(unsigned, max(max(a, b), max(c, d)))
	}
	return ends(uint32(signed), unsigned, nearest(dst[:n], uint32(signed), unsigned))
}
