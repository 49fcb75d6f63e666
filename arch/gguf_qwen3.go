package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

var qwen3Norms = ggufNames(GGUFOp{},
	"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight",
	"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")

// ggufQwen3 is the mapping of qwen3.
var ggufQwen3 = GGUF{
	Architecture: "qwen3",
	Config: map[string]any{
		"model_type": "qwen3", "architectures": []string{"Qwen3ForCausalLM"}, "use_sliding_window": false,
	},
	Keys:    ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), qwen3Norms, ggufQK, ggufValues, ggufMLP),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
		return nil
	},
}

// ggufQwen3Moe is the mapping of qwen3_moe. llama.cpp normalizes the weights of the experts, whatever a file says.
var ggufQwen3Moe = GGUF{
	Architecture: "qwen3moe",
	Config: map[string]any{
		"model_type": "qwen3_moe", "architectures": []string{"Qwen3MoeForCausalLM"}, "use_sliding_window": false,
		"norm_topk_prob": true,
	},
	Keys:    ggufKeys(append(ggufExperts, GGUFKey{Key: "expert_count", To: "num_experts", Field: "Experts.Count"})...),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), qwen3Norms, ggufQK, ggufValues, ggufMLP, ggufMoE),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
		return ggufDenseLayers(c, f)
	},
}

// ggufDenseLayers lists the layers without a router.
func ggufDenseLayers(c map[string]any, f GGUFFile) error {
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	dense := []int{}
	for i := range layers {
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)); !ok {
			dense = append(dense, i)
		}
	}
	c["mlp_only_layers"] = dense
	return nil
}

// ggufLayers returns the number of layers.
func ggufLayers(c map[string]any) (int, error) {
	n, _ := c["num_hidden_layers"].(json.Number)
	layers, err := n.Int64()
	if err != nil || layers < 1 || layers > maxLayers {
		return 0, fmt.Errorf("%w: block_count = %v: want a number from 1 to %d", ErrGGUF, c["num_hidden_layers"], maxLayers)
	}
	return int(layers), nil
}
