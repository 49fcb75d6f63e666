package packed

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

var le = binary.LittleEndian

// readAt fills dst with a tensor's bytes from offset.
func readAt(t safetensors.Source, dst []byte, offset int64) error {
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

// floats decodes len(dst) numbers of a scale's type: BF16, F16, F32, or E8M0, which may be declared as U8.
func floats(dst []float32, d safetensors.DType, src []byte) error {
	switch d {
	case safetensors.F8E8M0, safetensors.U8:
		for i := range dst {
			dst[i] = e8m0(src[i])
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

// PlainElements returns a reader of an unquantized tensor.
func PlainElements(t safetensors.Source) Elements { return plainElements{t} }

type plainElements struct{ t safetensors.Source }

func (p plainElements) Floats(dst []byte, begin, count int64) error {
	width := int64(p.t.DType.Bits() / 8)
	buf := make([]byte, count*width)
	if err := readAt(p.t, buf, begin*width); err != nil {
		return err
	}
	return quantize.Cast(dst, quantize.F32, buf, quantize.DType(p.t.DType))
}

func (p plainElements) Codes(quantize.Blocks, int64, int64) error {
	return wrong(p.t, "a plain tensor has no codes")
}

// e8m0 decodes a power of two from 2^-127 to 2^127. The highest code is NaN (OCP Microscaling Formats 1.0, 5.4.1).
func e8m0(code byte) float32 {
	if code == 0xff {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(code)-127))
}

func put(dst []byte, i int, v float32) { le.PutUint32(dst[4*i:], math.Float32bits(v)) }

// elements returns the number of elements of a shape.
func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}
