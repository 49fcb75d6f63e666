package packed

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/convert/packed/numbers"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// compressed-tensors stores 6-bit floats (E2M3) as X.weight_packed (U8 [out, in*3/4]), four to three bytes, the first
// in the lowest bits, with X.weight_scale, a power of two (U8) for 32 elements. Each is a number of mxfp8 (E4M3), too.
// https://github.com/vllm-project/compressed-tensors/blob/0.20.1/src/compressed_tensors/compressors/mxfp6

// mxfp6 reads a weight's headers; ok is false if its scales are not those of 6-bit floats.
func mxfp6(name string, t, scales safetensors.Source) (w Weight, ok bool) {
	if len(t.Shape) != 2 || numbers.Count(t.Shape) == 0 || !isPower(scales.DType) || t.Shape[1]%24 != 0 ||
		!slices.Equal(scales.Shape, []int64{t.Shape[0], t.Shape[1] / 24}) {
		return w, false
	}
	return Weight{
		Name: name + ".weight", Shape: []int64{t.Shape[0], t.Shape[1] / 3 * 4}, DType: safetensors.BF16,
		Parts: []safetensors.Source{t, scales}, Type: quantize.MXFP8, Format: "mxfp6",
		Read: mxfp6Weight{codes: t, scales: scales},
	}, true
}

type mxfp6Weight struct{ codes, scales safetensors.Source }

// wideFP6 has the codes of E4M3 for those of E2M3.
var wideFP6 = func() (wide [64]byte) {
	for code := range wide {
		v := math.Ldexp(float64(code&7), -3)
		if e := code >> 3 & 3; e > 0 {
			v = math.Ldexp(float64(code&7|8), e-4)
		}
		if code >= 32 {
			v = math.Copysign(v, -1)
		}
		for i, other := range numbers.FP8[safetensors.F8E4M3] {
			if float64(other) == v && math.Signbit(float64(other)) == math.Signbit(v) {
				wide[code] = byte(i)
			}
		}
	}
	return wide
}()

// Codes implements [Elements].
func (w mxfp6Weight) Codes(dst quantize.Blocks, begin, count int64) error {
	packed := make([]byte, count/4*3)
	if err := numbers.ReadAt(w.codes, packed, begin/4*3); err != nil {
		return err
	}
	for i := 0; i < len(packed); i += 3 {
		word := uint32(packed[i]) | uint32(packed[i+1])<<8 | uint32(packed[i+2])<<16
		for k := range 4 {
			dst.Packed[i/3*4+k] = wideFP6[word>>(6*k)&63]
		}
	}
	return numbers.ReadAt(w.scales, dst.Scales, begin/32)
}

// Floats implements [Elements].
func (w mxfp6Weight) Floats(dst []byte, begin, count int64) error {
	b := quantize.Blocks{Packed: make([]byte, count), Scales: make([]byte, count/32)}
	if err := w.Codes(b, begin, count); err != nil {
		return err
	}
	return quantize.MXFP8.Decode(dst, quantize.F32, b, quantize.F32)
}
