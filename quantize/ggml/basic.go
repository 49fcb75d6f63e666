package ggml

import (
	"encoding/binary"

	"github.com/x448/float16"
)

// The types with one float16 scale, and in the _1 types one float16 minimum, for 32 elements. Byte i of the codes holds
// element i in its low and element i+16 in its high bits; the fifth bits are in a little-endian uint32.

func half(b []byte) float32 {
	return float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()
}

func decodeQ4_0(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:18] {
		dst[i] = d * float32(int(q&15)-8)
		dst[i+16] = d * float32(int(q>>4)-8)
	}
}

func decodeQ4_1(dst []float32, b []byte) {
	d, m := half(b), half(b[2:])
	for i, q := range b[4:20] {
		dst[i] = float32(d*float32(q&15)) + m
		dst[i+16] = float32(d*float32(q>>4)) + m
	}
}

func decodeQ5_0(dst []float32, b []byte) {
	d, high := half(b), binary.LittleEndian.Uint32(b[2:])
	for i, q := range b[6:22] {
		dst[i] = d * float32(int(fifth(q&15, high, i))-16)
		dst[i+16] = d * float32(int(fifth(q>>4, high, i+16))-16)
	}
}

func decodeQ5_1(dst []float32, b []byte) {
	d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
	for i, q := range b[8:24] {
		dst[i] = float32(d*float32(fifth(q&15, high, i))) + m
		dst[i+16] = float32(d*float32(fifth(q>>4, high, i+16))) + m
	}
}

// fifth adds bit i of high to a code of four bits.
func fifth(code byte, high uint32, i int) byte { return code | byte(high>>i&1)<<4 }

func decodeQ8_0(dst []float32, b []byte) {
	d := half(b)
	for i, q := range b[2:34] {
		dst[i] = d * float32(int8(q))
	}
}
