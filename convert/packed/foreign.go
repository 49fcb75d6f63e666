package packed

import (
	"strings"

	"github.com/ingotml/ingot/safetensors"
)

// foreign are packings that no kind reads, by the names of their tensors. A tensor X+end is one if X+beside exists too.
// Some have arrays with the names that other packings use, so that they must be recognized before those.
var foreign = []struct{ name, end, beside string }{
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

// methods are the names of such packings in quantization_config.quant_method.
var methods = map[string]string{
	"aqlm": "AQLM", "bitblas": "BitBLAS", "eetq": "EETQ", "exl2": "EXL2 of ExLlamaV2", "exl3": "EXL3 of ExLlamaV3",
	"fouroversix": "Four Over Six", "fp_quant": "FP-Quant", "gemlite": "GemLite",
	"gemma": "Gemma's integers with quantized activations", "higgs": "HIGGS", "marlin": "Marlin",
	"metal": "Metal of transformers", "quanto": "Quanto", "quip": "QuIP#", "sinq": "SINQ", "spqr": "SpQR",
	"svdquant": "SVDQuant", "torchao": "torchao", "vptq": "VPTQ",
}

// checkForeign returns an error if the tensors are those of a packing that no kind reads, or if the configuration names
// one and a tensor holds codes.
func (c *Checkpoint) checkForeign() error {
	declared := methods[strings.ToLower(c.method())]
	for _, t := range c.Tensors() {
		for _, f := range foreign {
			base, ok := strings.CutSuffix(t.Name, f.end)
			if !ok {
				continue
			}
			if beside, ok := c.Lookup(base + f.beside); ok {
				return wrong(t, "with %s beside it, it is packed by %s, which this version does not read; %s",
					beside.Name, f.name, usePlain)
			}
		}
		if declared != "" && !isPlain(t.DType) {
			return wrong(t, "it is %s, and config.json %s.quant_method = %q: it is packed by %s, which this version does not "+
				"read; %s", t.DType, c.hfKey, c.method(), declared, usePlain)
		}
		if c.isStray(t) {
			return wrong(t, "it is %s, which no plain weight is, but neither config.json nor a tensor beside it says how it is "+
				"packed; %s", t.DType, usePlain)
		}
	}
	return nil
}

// described are the names of tensors of which one is beside codes X.weight of a packing that is read.
var described = []string{
	".weight_scale", ".weight_scale_inv", ".scale", ".scales", ".SCB", ".weight.absmax",
	".weight" + bnbState + "nf4", ".weight" + bnbState + "fp4",
}

// isStray reports whether a tensor holds codes that nothing describes. Where the configuration names the packing, its
// kind says what is missing.
func (c *Checkpoint) isStray(t safetensors.Source) bool {
	base, ok := strings.CutSuffix(t.Name, ".weight")
	switch t.DType {
	case safetensors.U8, safetensors.I8, safetensors.I16, safetensors.U16, safetensors.I32, safetensors.U32:
	default:
		return false
	}
	if !ok || c.MLX != nil || c.method() != "" && methods[strings.ToLower(c.method())] == "" {
		return false
	}
	for _, end := range described {
		if _, ok := c.Lookup(base + end); ok {
			return false
		}
	}
	return true
}
