package ggml

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
)

// grids are tables of 4 or 8 magnitudes that occur together; IQ types store indices into them. grids.bin holds them one
// after the other, a byte for each magnitude; testdata/gen writes it.
//
//go:embed grids.bin
var grids string

var (
	grid2XXS = grids[:256*8]
	grid2XS  = grids[256*8:][:512*8]
	grid2S   = grids[768*8:][:1024*8]
	grid3XXS = grids[1792*8:][:256*4]
	grid3S   = grids[1792*8+256*4:][:512*4]
	grid1S   = grids[1792*8+768*4:][:2048*8]
)

// signed writes the magnitudes of one entry of a grid, scaled by d. A set bit of signs makes an element negative.
func signed(dst []float32, entry string, d float32, signs byte) {
	for i := range entry {
		v := d * float32(entry[i])
		if signs>>i&1 != 0 {
			v = -v
		}
		dst[i] = v
	}
}

// even completes 7 sign bits with an eighth that makes their number even.
func even(index byte) byte { return index | byte(bits.OnesCount8(index)&1)<<7 }

// entry8 and entry4 return entry i of a grid with 8 or 4 magnitudes.
func entry8(grid string, i int) string { return grid[8*i:][:8] }
func entry4(grid string, i int) string { return grid[4*i:][:4] }

// nibble returns nibble i of b, the low one of each byte first.
func nibble(b []byte, i int) byte { return b[i/2] >> (i % 2 * 4) & 15 }

func decodeIQ2XXS(dst []float32, b []byte) {
	d := half(b)
	for g := range 8 { // of 32 elements: 4 indices, then 4 times 7 signs and a scale
		codes := b[2+g*8:][:8]
		rest := binary.LittleEndian.Uint32(codes[4:])
		scale := float32(d*(0.5+float32(rest>>28))) * 0.25
		for i := range 4 {
			signed(dst[g*32+i*8:], entry8(grid2XXS, int(codes[i])), scale, even(byte(rest>>(7*i)&127)))
		}
	}
}

func decodeIQ2XS(dst []float32, b []byte) {
	d, scales := half(b), b[66:74]
	for i := range 32 { // of 8 elements: 9 bits of index and 7 signs
		code := binary.LittleEndian.Uint16(b[2+2*i:])
		scale := float32(d*(0.5+float32(nibble(scales, i/2)))) * 0.25
		signed(dst[i*8:], entry8(grid2XS, int(code&511)), scale, even(byte(code>>9)))
	}
}

func decodeIQ2S(dst []float32, b []byte) {
	d, low, signs, high, scales := half(b), b[2:34], b[34:66], b[66:74], b[74:82]
	for i := range 32 {
		index := int(low[i]) | int(high[i/4]>>(i%4*2)&3)<<8
		scale := float32(d*(0.5+float32(nibble(scales, i/2)))) * 0.25
		signed(dst[i*8:], entry8(grid2S, index), scale, signs[i])
	}
}

func decodeIQ3XXS(dst []float32, b []byte) {
	d, codes := half(b), b[2:66]
	for g := range 8 {
		rest := binary.LittleEndian.Uint32(b[66+4*g:])
		scale := float32(d*(0.5+float32(rest>>28))) * 0.5
		for i := range 8 {
			signs := even(byte(rest>>(i/2*7)&127)) >> (i % 2 * 4)
			signed(dst[g*32+i*4:], entry4(grid3XXS, int(codes[g*8+i])), scale, signs)
		}
	}
}

func decodeIQ3S(dst []float32, b []byte) {
	d, low, high, signs, scales := half(b), b[2:66], b[66:74], b[74:106], b[106:110]
	for i := range 64 {
		index := int(low[i]) | int(high[i/8]>>(i%8)&1)<<8
		scale := d * float32(1+2*nibble(scales, i/8))
		signed(dst[i*4:], entry4(grid3S, index), scale, signs[i/2]>>(i%2*4))
	}
}

// shift is added to or subtracted from the elements of a group in the IQ1 types.
const shift = 0.125

// shifted writes one entry of the grid of -1, 0 and 1.
func shifted(dst []float32, entry string, d float32, negative bool) {
	delta := float32(shift)
	if negative {
		delta = -shift
	}
	for i := range entry {
		dst[i] = d * (float32(int8(entry[i])) + delta)
	}
}

func decodeIQ1S(dst []float32, b []byte) {
	d, low := half(b), b[2:34]
	for i := range 32 {
		h := binary.LittleEndian.Uint16(b[34+i/4*2:])
		index := int(low[i]) | int(h>>(i%4*3)&7)<<8
		shifted(dst[i*8:], entry8(grid1S, index), d*float32(2*(h>>12&7)+1), h&0x8000 != 0)
	}
}

func decodeIQ1M(dst []float32, b []byte) {
	low, high := b[:32], b[32:48]
	var scales [4]uint16
	var d uint16 // its nibbles are the top ones of the four words
	for i := range scales {
		scales[i] = binary.LittleEndian.Uint16(b[48+2*i:])
		d |= scales[i] >> 12 << (4 * i)
	}
	scale := half([]byte{byte(d), byte(d >> 8)})
	for i := range 32 {
		h := nibble(high, i)
		index := int(low[i]) | int(h&7)<<8
		s := scales[i/8] >> (i / 2 % 4 * 3) & 7
		shifted(dst[i*8:], entry8(grid1S, index), scale*float32(2*s+1), h&8 != 0)
	}
}

// levels holds the values of the codes of the IQ4 types.
var levels = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4NL(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		dst[i], dst[i+16] = d*levels[q&15], d*levels[q>>4]
	}
}

func decodeIQ4XS(dst []float32, b []byte) {
	d, high, low := half(b), binary.LittleEndian.Uint16(b[2:]), b[4:8]
	for g := range 8 {
		code := nibble(low, g) | byte(high>>(2*g)&3)<<4
		scale := d * float32(int(code)-32)
		for i, q := range b[8+16*g:][:16] {
			dst[g*32+i], dst[g*32+i+16] = scale*levels[q&15], scale*levels[q>>4]
		}
	}
}
