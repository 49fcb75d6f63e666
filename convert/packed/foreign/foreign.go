// Package foreign names packings of weights that ingot does not read, by their tensors.
package foreign

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/safetensors"
)

// Packing is a packing by the names of its tensors: X+End is one of it if X+Beside exists too.
type Packing struct{ Name, End, Beside string }

// Packings are those that are not read. Some have arrays with the names that other packings use, so that they must be
// recognized before those.
var Packings = []Packing{
	{"AQLM", ".codes", ".codebooks"},
	{"EETQ", ".weight", ".weight_scales"},
	{"EXL2 of ExLlamaV2", ".q_weight", ".q_scale"},
	{"EXL3 of ExLlamaV3", ".trellis", ".svh"},
	{"EXL3 of ExLlamaV3", ".trellis", ".sv"},
	{"Gemma's integers with quantized activations", ".weight", ".input_activation_scale"},
	{"Gemma's integers with quantized activations", ".embedding_quantized", ".embedding_scale"},
	{"GemLite", ".W_q", ".orig_shape"},
	{"HIGGS", ".weight", ".tables2"},
	{"Marlin", ".B", ".s"},
	{"Marlin", ".B_24", ".s"},
	{"Metal of transformers", ".weight", ".qbiases"},
	{"Quanto", ".weight._data", ".weight._scale"},
	{"Quanto", ".weight._data._data", ".weight._scale"},
	{"QuIP#", ".Qidxs", ".SU"},
	{"QuIP#", ".Qidxs_0", ".SU"},
	{"SpQR", ".dense_weights", ".row_offsets"},
	{"SVDQuant", ".qweight", ".wscales"},
	{"torchao", "._weight_qdata", "._weight_scale"},
	{"torchao", "._weight_qdata", "._weight_scale_and_zero"},
	{"VPTQ", ".indices", ".centroids"},
	{"VPTQ", ".indices", ".centroids.weight"},
}

// Methods are the names of such packings in quantization_config.quant_method.
var Methods = map[string]string{
	"aqlm": "AQLM", "bitblas": "BitBLAS", "eetq": "EETQ", "exl2": "EXL2 of ExLlamaV2", "exl3": "EXL3 of ExLlamaV3",
	"fouroversix": "Four Over Six", "fp_quant": "FP-Quant", "gemlite": "GemLite",
	"gemma": "Gemma's integers with quantized activations", "higgs": "HIGGS", "marlin": "Marlin",
	"metal": "Metal of transformers", "quanto": "Quanto", "quip": "QuIP#", "sinq": "SINQ", "spqr": "SpQR",
	"svdquant": "SVDQuant", "torchao": "torchao", "vptq": "VPTQ",
}

// Checkpoint is what is asked of a checkpoint.
type Checkpoint struct {
	Has    func(name string) bool          // whether it has a tensor
	Codes  func(t safetensors.Source) bool // whether a tensor cannot be used as it is
	Method string                          // quant_method of its quantization_config; "" = none
	Key    string                          // the configuration's name
}

// Find returns the first tensor of a packing that is not read, and what is wrong with it; "" if there is none.
func (c Checkpoint) Find(tensors []safetensors.Source) (t safetensors.Source, problem string) {
	declared := Methods[strings.ToLower(c.Method)]
	for _, t := range tensors {
		for _, p := range Packings {
			if base, ok := strings.CutSuffix(t.Name, p.End); ok && c.Has(base+p.Beside) {
				return t, fmt.Sprintf("with %s beside it, it is packed by %s, which this version does not read",
					base+p.Beside, p.Name)
			}
		}
		if declared != "" && c.Codes(t) {
			return t, fmt.Sprintf("it is %s, and config.json %s.quant_method = %q: it is packed by %s, which this version does "+
				"not read", t.DType, c.Key, c.Method, declared)
		}
		if (c.Method == "" || declared != "") && c.isStray(t) {
			return t, fmt.Sprintf("it is %s, which no plain weight is, but neither config.json nor a tensor beside it says how "+
				"it is packed", t.DType)
		}
	}
	return t, ""
}

// described are the names of tensors of which one is beside codes X.weight of a packing that is read.
var described = []string{
	".weight_scale", ".weight_scale_inv", ".scale", ".scales", ".SCB", ".weight.absmax",
	".weight.quant_state.bitsandbytes__nf4", ".weight.quant_state.bitsandbytes__fp4",
}

// isStray reports whether a matrix holds codes that nothing describes.
func (c Checkpoint) isStray(t safetensors.Source) bool {
	base, ok := strings.CutSuffix(t.Name, ".weight")
	switch t.DType {
	case safetensors.U8, safetensors.I8, safetensors.I16, safetensors.U16, safetensors.I32, safetensors.U32:
	default:
		return false
	}
	return ok && len(t.Shape) > 1 && !slices.ContainsFunc(described, func(end string) bool { return c.Has(base + end) })
}
