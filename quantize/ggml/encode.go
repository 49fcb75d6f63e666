package ggml

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ingotml/ingot/quantize"
	"github.com/x448/float16"
)

// Encode writes elements as blocks, as ggml's quantize_row_*_ref does. Types are F32, F16, BF16, Q4_0, Q4_1, Q8_0 and
// MXFP4. Elements beyond the range of the type are an error wrapping ErrRange.
func (t Type) Encode(dst []byte, src []float32) error {
	l := layouts[t]
	if l.elements == 0 || len(src)%l.elements != 0 || len(dst) != len(src)/l.elements*l.bytes {
		return fmt.Errorf("%w: %d elements of %v in %d bytes", ErrLength, len(src), t, len(dst))
	}
	if l.dtype != "" {
		wide := make([]byte, 4*len(src))
		for i, x := range src {
			binary.LittleEndian.PutUint32(wide[4*i:], math.Float32bits(x))
		}
		if l.dtype == quantize.F32 {
			copy(dst, wide)
			return nil
		}
		if err := quantize.CastTo(l.dtype).Encode(quantize.Blocks{Packed: dst}, wide, quantize.F32); err != nil {
			return fmt.Errorf("%w: %w", ErrRange, err)
		}
		return nil
	}
	encode := map[Type]func(dst []byte, src []float32) bool{
		Q4_0: encodeQ4_0, Q4_1: encodeQ4_1, Q8_0: encodeQ8_0, MXFP4: encodeMXFP4,
	}[t]
	if encode == nil {
		return fmt.Errorf("%w: elements are not encoded as %v", ErrType, t)
	}
	for i := range len(src) / l.elements {
		if !encode(dst[i*l.bytes:][:l.bytes], src[i*l.elements:][:l.elements]) {
			return fmt.Errorf("%w: block %d of %v", ErrRange, i, t)
		}
	}
	return nil
}

// putHalf writes a float16, and reports whether it is finite.
func putHalf(dst []byte, v float32) bool {
	h := float16.Fromfloat32(v)
	binary.LittleEndian.PutUint16(dst, h.Bits())
	return h.IsFinite()
}

// inverse returns 1/d, or 0 for 0.
func inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// pairs writes codes of 4 bits: element i and i+16 in a byte.
func pairs(dst []byte, code func(i int) byte) {
	for i := range 16 {
		dst[i] = code(i) | code(i+16)<<4
	}
}

func encodeQ4_0(dst []byte, src []float32) bool {
	var top, signed float32
	for _, x := range src {
		if a := abs(x); a > top {
			top, signed = a, x
		}
	}
	d := signed / -8
	id := inverse(d)
	pairs(dst[2:], func(i int) byte { return byte(min(15, int8(src[i]*id+8.5))) })
	return putHalf(dst, d)
}

func encodeQ4_1(dst []byte, src []float32) bool {
	lo, hi := src[0], src[0]
	for _, x := range src {
		lo, hi = min(lo, x), max(hi, x)
	}
	d := (hi - lo) / 15
	id := inverse(d)
	pairs(dst[4:], func(i int) byte { return byte(min(15, int8((src[i]-lo)*id+0.5))) })
	return putHalf(dst, d) && putHalf(dst[2:], lo)
}

func encodeQ8_0(dst []byte, src []float32) bool {
	var top float32
	for _, x := range src {
		top = max(top, abs(x))
	}
	d := top / 127
	id := inverse(d)
	for i, x := range src {
		dst[2+i] = byte(int8(math.Round(float64(x * id))))
	}
	return putHalf(dst, d)
}

func encodeMXFP4(dst []byte, src []float32) bool {
	var top float32
	for _, x := range src {
		top = max(top, abs(x))
	}
	if top-top != 0 {
		return false
	}
	if dst[0] = 0; top > 0 {
		dst[0] = byte(max(0, math.Floor(math.Log2(float64(top)))-2+127))
	}
	d := halfE8M0(dst[0])
	pairs(dst[1:], func(i int) byte {
		best, least := byte(0), float32(math.Inf(1))
		for c, v := range doubledE2M1 {
			if e := abs(v*d - src[i]); e < least {
				best, least = byte(c), e
			}
		}
		return best
	})
	return true
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

// Holders lists the types that may hold the codes of a format, the smallest first.
func Holders(format quantize.Type) []Type {
	switch {
	case format.Mode() == "affine" && format.Group()%32 == 0:
		switch format.Bits() {
		case 4:
			return []Type{Q4_0, Q4_1}
		case 5:
			return []Type{Q5_0, Q5_1}
		case 8:
			return []Type{Q8_0}
		}
	case format == quantize.MXFP4:
		return []Type{MXFP4}
	case format == quantize.NVFP4:
		return []Type{NVFP4}
	}
	return nil
}

// Compose writes groups of a format as blocks with the same codes: the inverse of [Type.Recode]. The scales and biases
// of an affine format are float32. A group that the type does not hold exactly is an error wrapping ErrRange.
func (t Type) Compose(dst []byte, format quantize.Type, src quantize.Blocks) error {
	l := layouts[t]
	n := len(dst) / max(l.bytes, 1)
	c, ok := codes[t]
	if !ok || c.Rounded || len(dst) != n*l.bytes || len(src.Packed)*8 != n*l.elements*format.Bits() {
		return fmt.Errorf("%w: %d bytes of %v of %d bytes of %v", ErrLength, len(dst), t, len(src.Packed), format)
	}
	one := len(src.Packed) / max(n, 1)
	for i := range n {
		b, packed := dst[i*l.bytes:][:l.bytes], src.Packed[i*one:][:one]
		switch t {
		case MXFP4:
			if b[0] = src.Scales[i]; b[0] == 255 {
				return fmt.Errorf("%w: group %d is not a number", ErrRange, i)
			}
			unnibble(b[1:], packed)
			continue
		case NVFP4:
			copy(b, src.Scales[4*i:][:4])
			for g := range 4 {
				unnibble(b[4+8*g:][:8], packed[8*g:][:8])
			}
			continue
		}
		at := i * l.elements / format.Group() * 4
		if !t.affine(b, packed, float(src.Scales[at:]), float(src.Biases[at:])) {
			return fmt.Errorf("%w: group %d of %v in %v", ErrRange, i, format, t)
		}
	}
	return nil
}

func float(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// HoldsAffine reports whether the type holds a group with this scale and bias exactly.
func (t Type) HoldsAffine(scale, bias float32) bool {
	exact := func(v float32) bool { return v-v == 0 && float16.Fromfloat32(v).Float32() == v }
	switch t {
	case Q4_0:
		return exact(scale) && bias == -8*scale
	case Q5_0:
		return exact(scale) && bias == -16*scale
	case Q8_0:
		return exact(scale) && bias == -128*scale
	case Q4_1, Q5_1:
		return exact(scale) && exact(bias)
	}
	return false
}

// affine writes a block of 32 codes.
func (t Type) affine(b, packed []byte, scale, bias float32) bool {
	if !t.HoldsAffine(scale, bias) {
		return false
	}
	putHalf(b, scale)
	b = b[2:]
	if t == Q4_1 || t == Q5_1 {
		putHalf(b, bias)
		b = b[2:]
	}
	switch t {
	case Q4_0, Q4_1:
		unnibble(b, packed)
	case Q8_0:
		for i, q := range packed {
			b[i] = q ^ 128
		}
	default:
		var high uint32
		five := func(i int) byte {
			at := 5 * i
			two := uint16(packed[at/8])
			if at/8+1 < len(packed) {
				two |= uint16(packed[at/8+1]) << 8
			}
			return byte(two>>(at%8)) & 31
		}
		for i := range 32 {
			high |= uint32(five(i)>>4) << i
		}
		binary.LittleEndian.PutUint32(b, high)
		pairs(b[4:], func(i int) byte { return five(i) & 15 })
	}
	return true
}

// unnibble is the inverse of nibbles.
func unnibble(dst, src []byte) {
	half := len(dst) / 2
	for i := range half {
		dst[2*i] = src[i]&15 | src[half+i]<<4
		dst[2*i+1] = src[i]>>4 | src[half+i]&0xf0
	}
}
