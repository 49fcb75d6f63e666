package arch

import (
	"encoding/json"
	"slices"
)

// ggufPhimoe is the mapping of phimoe. A file has one attention factor for texts of all lengths.
var ggufPhimoe = GGUF{
	Architecture: "phimoe",
	Config:       map[string]any{"model_type": "phimoe", "architectures": []string{"PhimoeForCausalLM"}},
	Keys: ggufCount("num_local_experts",
		GGUFKey{Key: "rope.scaling.original_context_length", To: "original_max_position_embeddings", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMoE, ggufLayerNorms(GGUFOp{}), []GGUFTensor{
		{Name: "output.bias", To: "lm_head.bias"},
		{Name: "rope_factors_short.weight", Why: "its factors are in config.json"},
		{Name: "rope_factors_long.weight", Why: "its factors are in config.json"},
	}),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["lm_head_bias"] = f.Shape("output.bias")
		if v, ok := f.Value("phimoe.attention.sliding_window"); ok && v != json.Number("0") {
			c["sliding_window"] = v
		}
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		if _, ok := f.Shape("rope_factors_short.weight"); !ok {
			return nil
		}
		scaling := map[string]any{"short_mscale": 1, "long_mscale": 1}
		if v, ok := f.Value("phimoe.rope.scaling.attn_factor"); ok {
			scaling["short_mscale"], scaling["long_mscale"] = v, v
		}
		return ggufLongRope(c, scaling, f)
	},
}
