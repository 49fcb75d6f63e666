package ggml

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ingotml/ingot/quantize"
	"github.com/x448/float16"
)

// Codes is a format of package quantize that holds the codes of a type unchanged.
type Codes struct {
	Format quantize.Type
	// Rounded is set if float16 scales and biases are rounded. Then only float32 ones represent the tensor exactly.
	Rounded bool
}

// codes lists the types whose codes Recode moves.
var codes = map[Type]struct {
	Codes
	recode func(w *writer, block []byte)
}{
	Q4_0:  {Codes{Format: quantize.Int4.WithGroup(32)}, recodeQ4_0},
	Q4_1:  {Codes{Format: quantize.Int4.WithGroup(32)}, recodeQ4_1},
	Q5_0:  {Codes{Format: quantize.Int5.WithGroup(32)}, recodeQ5_0},
	Q5_1:  {Codes{Format: quantize.Int5.WithGroup(32)}, recodeQ5_1},
	Q8_0:  {Codes{Format: quantize.Int8.WithGroup(32)}, recodeQ8_0},
	Q4_K:  {Codes{Format: quantize.Int4.WithGroup(32), Rounded: true}, recodeQ4_K},
	Q5_K:  {Codes{Format: quantize.Int5.WithGroup(32), Rounded: true}, recodeQ5_K},
	TQ1_0: {Codes{Format: quantize.Int2.WithGroup(128)}, recodeTernary(digitTQ1, 52)},
	TQ2_0: {Codes{Format: quantize.Int2.WithGroup(128)}, recodeTernary(digitTQ2, 64)},
	Q1_0:  {Codes{Format: quantize.Int2.WithGroup(128)}, recodeQ1_0},
	Q2_0:  {Codes{Format: quantize.Int2.WithGroup(64)}, recodeQ2_0},
	PQ2_0: {Codes{Format: quantize.Int2.WithGroup(128)}, recodeQ2_0},
	MXFP4: {Codes{Format: quantize.MXFP4}, recodeMXFP4},
	NVFP4: {Codes{Format: quantize.NVFP4}, recodeNVFP4},
}

// Codes returns the format that holds the codes of t, and false if there is none.
func (t Type) Codes() (Codes, bool) {
	c, ok := codes[t]
	return c.Codes, ok
}

// Recode moves the blocks in src to the arrays of t's Codes. scales is the type of an affine format's scales and
// biases: F16 or F32; the others ignore it. The arrays hold exactly the groups of src.
//
// It returns the largest error that rounding a scale and a bias causes in an element; 0 if the arrays represent src
// exactly. A scale that the format cannot hold (NaN, infinite, or too large for float16) is an error wrapping ErrRange.
func (t Type) Recode(dst quantize.Blocks, scales quantize.DType, src []byte) (float64, error) {
	c, ok := codes[t]
	if !ok {
		return 0, fmt.Errorf("%w: no format has the codes of %v", ErrType, t)
	}
	if c.Format.Mode() == "affine" && scales != quantize.F16 && scales != quantize.F32 {
		return 0, fmt.Errorf("%w: scales of type %s", ErrType, scales)
	}
	l, size := layouts[t], c.Format.GroupSizes(scales)
	n := len(src) / l.bytes
	groups := n * l.elements / c.Format.Group()
	if len(src) != n*l.bytes || len(dst.Packed) != groups*size.Packed || len(dst.Scales) != groups*size.Scales ||
		len(dst.Biases) != groups*size.Biases {
		return 0, fmt.Errorf("%w: %d bytes of %v, arrays of %d, %d and %d bytes", ErrLength, len(src), t,
			len(dst.Packed), len(dst.Scales), len(dst.Biases))
	}
	w := &writer{dst: dst, wide: scales == quantize.F32, packed: size.Packed}
	for i := range n {
		if c.recode(w, src[i*l.bytes:][:l.bytes]); w.bad {
			return 0, fmt.Errorf("%w: block %d of %v", ErrRange, i, t)
		}
	}
	return w.worst, nil
}

// writer appends groups to the arrays of a format.
type writer struct {
	dst    quantize.Blocks
	packed int  // bytes of a group's codes
	wide   bool // scales and biases are float32
	worst  float64
	bad    bool
}

// codes returns the place of the next group's codes, zeroed.
func (w *writer) codes() []byte {
	b := w.dst.Packed[:w.packed]
	w.dst.Packed = w.dst.Packed[w.packed:]
	clear(b)
	return b
}

// affine appends a scale and a bias, for codes up to top.
func (w *writer) affine(scale, bias float32, top int) {
	a, b := w.put(&w.dst.Scales, scale), w.put(&w.dst.Biases, bias)
	w.worst = max(w.worst, math.Abs(b), math.Abs(a*float64(top)+b))
}

// put appends v to an array and returns its rounding error.
func (w *writer) put(array *[]byte, v float32) float64 {
	if v-v != 0 {
		w.bad = true
		return 0
	}
	if w.wide {
		binary.LittleEndian.PutUint32(*array, math.Float32bits(v))
		*array = (*array)[4:]
		return 0
	}
	h := float16.Fromfloat32(v)
	w.bad = w.bad || h.IsInf(0)
	binary.LittleEndian.PutUint16(*array, h.Bits())
	*array = (*array)[2:]
	return float64(h.Float32()) - float64(v)
}

// byteScale appends a scale of one byte.
func (w *writer) byteScale(s byte) {
	w.dst.Scales[0] = s
	w.dst.Scales = w.dst.Scales[1:]
}

// nibbles writes the low and then the high nibbles of src as codes of 4 bits.
func nibbles(dst, src []byte) {
	half := len(src) / 2
	for i := range half {
		dst[i] = src[2*i]&15 | src[2*i+1]<<4
		dst[half+i] = src[2*i]>>4 | src[2*i+1]&0xf0
	}
}

// bits5 writes 32 codes of 5 bits.
func bits5(dst []byte, code func(i int) byte) {
	for i := range 32 {
		at := 5 * i
		c := uint16(code(i)) << (at % 8)
		dst[at/8] |= byte(c)
		if c > 255 {
			dst[at/8+1] |= byte(c >> 8)
		}
	}
}

func recodeQ4_0(w *writer, b []byte) {
	d := half(b)
	w.affine(d, -8*d, 15)
	nibbles(w.codes(), b[2:18])
}

func recodeQ4_1(w *writer, b []byte) {
	w.affine(half(b), half(b[2:]), 15)
	nibbles(w.codes(), b[4:20])
}

func recodeQ5_0(w *writer, b []byte) {
	d := half(b)
	w.affine(d, -16*d, 31)
	w.five(binary.LittleEndian.Uint32(b[2:]), b[6:22])
}

func recodeQ5_1(w *writer, b []byte) {
	w.affine(half(b), half(b[2:]), 31)
	w.five(binary.LittleEndian.Uint32(b[4:]), b[8:24])
}

// five appends 32 codes: the low and then the high nibbles of 16 bytes, and bits of high.
func (w *writer) five(high uint32, low []byte) {
	bits5(w.codes(), func(i int) byte { return fifth(low[i%16]>>(i/16*4)&15, high, i) })
}

func recodeQ8_0(w *writer, b []byte) {
	d := half(b)
	w.affine(d, -128*d, 255)
	dst := w.codes()
	for i, q := range b[2:34] {
		dst[i] = q ^ 128
	}
}

func recodeQ4_K(w *writer, b []byte) {
	scales, offsets := groupsK(half(b), half(b[2:]), b[4:16])
	for g := range scales {
		w.affine(scales[g], -offsets[g], 15)
		src, dst, up := b[16+g/2*32:][:32], w.codes(), g%2*4
		for i := range dst {
			dst[i] = src[2*i]>>up&15 | src[2*i+1]>>up&15<<4
		}
	}
}

func recodeQ5_K(w *writer, b []byte) {
	scales, offsets := groupsK(half(b), half(b[2:]), b[4:16])
	high := b[16:48]
	for g := range scales {
		w.affine(scales[g], -offsets[g], 31)
		src := b[48+g/2*32:]
		bits5(w.codes(), func(i int) byte { return src[i]>>(g%2*4)&15 | high[i]>>g&1<<4 })
	}
}

// recodeTernary appends the two groups of a block whose scale is at offset at.
func recodeTernary(digit func(b []byte, i int) byte, at int) func(*writer, []byte) {
	return func(w *writer, b []byte) {
		d := half(b[at:])
		for g := range 2 {
			w.affine(d, -d, 3)
			dst := w.codes()
			for i := range 128 {
				dst[i/4] |= digit(b, g*128+i) << (i % 4 * 2)
			}
		}
	}
}

// recodeMXFP4 keeps the scale, which both sides store as E8M0. 255 is NaN there and 2^127 in ggml.
func recodeMXFP4(w *writer, b []byte) {
	w.bad = b[0] == 255
	w.byteScale(b[0])
	nibbles(w.codes(), b[1:17])
}

// recodeNVFP4 keeps the scales without their sign, which ggml ignores. ggml reads NaN as 0.
func recodeNVFP4(w *writer, b []byte) {
	for g := range 4 {
		scale := b[g] & 0x7f
		if b[g] == 0x7f {
			scale = 0
		}
		w.bad = w.bad || b[g] == 0xff
		w.byteScale(scale)
		nibbles(w.codes(), b[4+8*g:][:8])
	}
}
