// Package numbers reads numbers from the arrays of packed tensors.
package numbers

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

var le = binary.LittleEndian

// ReadAt fills dst with a tensor's bytes from offset.
func ReadAt(t safetensors.Source, dst []byte, offset int64) error {
	if len(dst) == 0 {
		return nil
	}
	n, err := t.Reader().ReadAt(dst, offset)
	if n == len(dst) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Floats decodes len(dst) numbers of a scale's type: BF16, F16, F32, or E8M0, which may be declared as U8.
func Floats(dst []float32, d safetensors.DType, src []byte) error {
	switch d {
	case safetensors.F8E8M0, safetensors.U8:
		for i := range dst {
			dst[i] = E8M0(src[i])
		}
		return nil
	}
	buf := make([]byte, 4*len(dst))
	if err := quantize.Cast(buf, quantize.F32, src, quantize.DType(d)); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = math.Float32frombits(le.Uint32(buf[4*i:]))
	}
	return nil
}

// Some reads elements of a tensor of BF16, F16 or F32.
func Some(t safetensors.Source, dst []float32, first int64) error {
	width := int64(t.DType.Bits() / 8)
	raw := make([]byte, int64(len(dst))*width)
	if err := ReadAt(t, raw, first*width); err != nil {
		return err
	}
	return Floats(dst, t.DType, raw)
}

// E8M0 decodes a power of two from 2^-127 to 2^127. The highest code is NaN (OCP Microscaling Formats 1.0, 5.4.1).
func E8M0(code byte) float32 {
	if code == 0xff {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(code)-127))
}

// Put writes element i of an array of little-endian float32.
func Put(dst []byte, i int, v float32) { le.PutUint32(dst[4*i:], math.Float32bits(v)) }

// Count returns the number of elements of a shape.
func Count(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// Pack packs codes as a bit stream, lowest bits first. The codes must fill whole bytes.
func Pack(dst []byte, codes []uint8, bits int) {
	switch bits {
	case 8:
		copy(dst, codes)
		return
	case 4:
		for i := range dst {
			dst[i] = codes[2*i] | codes[2*i+1]<<4
		}
		return
	}
	var word uint64
	have := 0
	for _, c := range codes {
		word |= uint64(c) << have
		for have += bits; have >= 8; have -= 8 {
			dst[0], dst = byte(word), dst[1:]
			word >>= 8
		}
	}
}

// FP8 maps codes to values (OCP 8-bit Floating Point 1.0, table 1).
var FP8 = map[safetensors.DType]*[256]float32{
	safetensors.F8E4M3: fp8Table(4, 3, false),
	safetensors.F8E5M2: fp8Table(5, 2, true),
}

// fp8Table returns the values of a format with that many exponent and mantissa bits. With infinities, the highest
// exponent encodes infinity and NaN; otherwise only the highest code is NaN.
func fp8Table(expBits, manBits int, infinities bool) *[256]float32 {
	var t [256]float32
	bias := 1<<(expBits-1) - 1
	for i := range t {
		exp, man := i>>manBits&(1<<expBits-1), float64(i&(1<<manBits-1))
		v := math.Ldexp(man, 1-bias-manBits)
		if exp > 0 {
			v = math.Ldexp(man+float64(int(1)<<manBits), exp-bias-manBits)
		}
		switch last := exp == 1<<expBits-1; {
		case infinities && last && man == 0:
			v = math.Inf(1)
		case infinities && last, last && int(man) == 1<<manBits-1:
			v = math.NaN()
		}
		if i >= 128 {
			v = -v
		}
		t[i] = float32(v)
	}
	return &t
}
