package arch

import (
	"encoding/json"
	"slices"
)

// ggufLlama4 is the mapping of llama4. llama.cpp takes the size of chunks, the growth of queries and which layers have
// a rope from the published models, whatever a file says, and norms of queries and keys by the number of experts.
var ggufLlama4 = GGUF{
	Architecture: "llama4",
	Config:       map[string]any{"model_type": "llama4_text", "architectures": []string{"Llama4ForCausalLM"}},
	Keys: append(slices.DeleteFunc(ggufCount("num_local_experts",
		GGUFKey{Key: "expert_feed_forward_length", To: "intermediate_size"},
		GGUFKey{Key: "interleave_moe_layer_step", To: "interleave_moe_layer_step"}),
		func(k GGUFKey) bool { return k.Key == "feed_forward_length" }),
		GGUFKey{Key: "feed_forward_length", To: "intermediate_size_mlp"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms, ggufMoE, ggufShared),
	Adjust: func(c map[string]any, f GGUFFile) error {
		c["use_qk_norm"] = c["num_local_experts"] != json.Number("128")
		if v, ok := f.Value("llama4.attention.sliding_window"); ok && v == json.Number("0") {
			layers, err := ggufLayers(c)
			if err != nil {
				return err
			}
			c["layer_types"] = slices.Repeat([]string{fullAttention}, int(layers))
			c["no_rope_layers"] = slices.Repeat([]int{1}, int(layers))
		}
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufFactorsRope(c, f)
	},
}
