package search

import (
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/safetensors"
)

// decodeCosts are the costs of one weight for a token, by type: how many bytes of a plain read of memory take as long
// as its part of a product with one row. `make bench-kernels` measured them with AVX2 on two cores, where unpacking
// takes longer than reading for some types. They are constants, so that a search does not depend on how busy the
// machine is.
var decodeCosts = map[quantize.Type]float64{
	quantize.Int2: 0.48, quantize.Int2.WithGroup(32): 0.53, quantize.Int2.WithGroup(128): 0.48,
	quantize.Int3: 0.59, quantize.Int3.WithGroup(32): 0.68, quantize.Int3.WithGroup(128): 0.58,
	quantize.Int4: 0.57, quantize.Int4.WithGroup(32): 0.65, quantize.Int4.WithGroup(128): 0.56,
	quantize.Int5: 0.73, quantize.Int5.WithGroup(32): 0.77, quantize.Int5.WithGroup(128): 0.69,
	quantize.Int6: 0.83, quantize.Int6.WithGroup(32): 0.88, quantize.Int6.WithGroup(128): 0.78,
	quantize.Int8: 1.08, quantize.Int8.WithGroup(32): 1.09, quantize.Int8.WithGroup(128): 1.04,
	quantize.MXFP4: 0.62, quantize.NVFP4: 0.69, quantize.MXFP8: 1.33,
}

// plainCosts are the costs of one weight that is not quantized.
var plainCosts = map[safetensors.DType]float64{safetensors.BF16: 2.3, safetensors.F16: 2.3, safetensors.F32: 4.6}

// cost returns what a search pays for an option of a tensor: the bytes that a token reads of it. With byTime, it is the
// bytes that take as long.
func (t *tensor) cost(o option, byTime bool) float64 {
	if !byTime {
		return t.share * float64(o.planned.Bytes)
	}
	each := decodeCosts[o.of]
	if o.of == 0 {
		each = plainCosts[t.plain.Source]
	}
	return t.share * each * float64(t.plain.Params())
}

// cost returns the cost of a choice.
func (s *searcher) cost(c choice) (sum float64) {
	for i, t := range s.tensors {
		sum += t.cost(t.options[c[i]], s.Speed)
	}
	return sum
}
