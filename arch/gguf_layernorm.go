package arch

import (
	"slices"
	"strings"
)

// ggufLayerNorms are the LayerNorms of a pre-norm decoder, op for their weights.
func ggufLayerNorms(op GGUFOp) []GGUFTensor {
	biases := append(ggufNames(GGUFOp{}, "attn_norm.bias", "input_layernorm.bias",
		"ffn_norm.bias", "post_attention_layernorm.bias"), GGUFTensor{Name: "output_norm.bias", To: "model.norm.bias"})
	return append(biases, ggufNames(op, "attn_norm.weight", "input_layernorm.weight",
		"ffn_norm.weight", "post_attention_layernorm.weight")...)
}

// ggufPlainMLP is a feed-forward block without a gate.
func ggufPlainMLP(up, down string) []GGUFTensor {
	return ggufLinears(GGUFOp{}, "ffn_up", up, "ffn_down", down)
}

// ggufStarcoder2 is the mapping of starcoder2. llama.cpp ignores the window.
var ggufStarcoder2 = withBias(GGUF{
	Architecture: "starcoder2",
	Config:       map[string]any{"model_type": "starcoder2", "architectures": []string{"Starcoder2ForCausalLM"}},
	Keys:         ggufEps("norm_epsilon"),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufPlainMLP("mlp.c_fc", "mlp.c_proj"),
		ggufLayerNorms(GGUFOp{})),
	Adjust: ggufBiases,
}, "use_bias")

// ggufEps are the keys of a decoder with LayerNorms, whose epsilon has the given key.
func ggufEps(to string) []GGUFKey {
	keys := ggufKeys()
	for i, k := range keys {
		if k.To == "rms_norm_eps" {
			keys[i] = GGUFKey{Key: "attention.layer_norm_epsilon", To: to}
		}
	}
	return keys
}

// ggufNemotron is the mapping of nemotron. Weights of norms have 1 added.
var ggufNemotron = GGUF{
	Architecture: "nemotron",
	Config:       map[string]any{"model_type": "nemotron", "architectures": []string{"NemotronForCausalLM"}},
	Keys:         ggufEps("norm_eps"),
	Tensors: slices.Concat(ggufEnds(plusOne), ggufQK, ggufValues, ggufPlainMLP("mlp.up_proj", "mlp.down_proj"),
		ggufLayerNorms(plusOne)),
	Adjust: func(c map[string]any, f GGUFFile) error {
		// The converter takes the part of hidden_size/num_attention_heads, whatever head_dim is.
		dim, own := c["head_dim"]
		delete(c, "head_dim")
		err := ggufPartial(c, "nemotron", f)
		if own {
			c["head_dim"] = dim
		}
		if err != nil {
			return err
		}
		return ggufBiases(c, f)
	},
}

// ggufWeights returns the entries of weights.
func ggufWeights(list []GGUFTensor) []GGUFTensor {
	return slices.DeleteFunc(slices.Clone(list), func(t GGUFTensor) bool { return !strings.HasSuffix(t.Name, ".weight") })
}

// ggufStableLM is the mapping of stablelm.
var ggufStableLM = GGUF{
	Architecture: "stablelm",
	Config:       map[string]any{"model_type": "stablelm", "architectures": []string{"StableLmForCausalLM"}},
	Keys: append(ggufEps("layer_norm_eps"),
		GGUFKey{Key: "use_parallel_residual", To: "use_parallel_residual", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufLayerNorms(GGUFOp{}), ggufNames(GGUFOp{},
		"attn_q_norm.weight", "self_attn.q_layernorm.weight", "attn_k_norm.weight", "self_attn.k_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["qk_layernorm"] = f.Shape("blk.0.attn_q_norm.weight")
		_, c["use_qkv_bias"] = f.Shape("blk.0.attn_q.bias")
		_, serial := f.Shape("blk.0.ffn_norm.weight")
		c["use_parallel_residual"] = !serial
		return ggufPartial(c, "stablelm", f)
	},
}

// ggufOlmo is the mapping of olmo, which has the changes of llama in weights but not in biases.
var ggufOlmo = GGUF{
	Architecture: "olmo",
	Config:       map[string]any{"model_type": "olmo", "architectures": []string{"OlmoForCausalLM"}},
	Keys:         append(ggufEps("layer_norm_eps"), GGUFKey{Key: "attention.clamp_kqv", To: "clip_qkv", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufWeights(ggufPairs), ggufNames(GGUFOp{},
		"attn_q.bias", "self_attn.q_proj.bias", "attn_k.bias", "self_attn.k_proj.bias"), ggufValues, ggufMLP),
	Adjust: ggufBiases,
}
