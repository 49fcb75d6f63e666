package arch

import "slices"

// ggufApertus is the mapping of apertus. The parameters of its activation function are metadata.
// https://github.com/ggml-org/llama.cpp/blob/master/conversion/apertus.py
var ggufApertus = GGUF{
	Architecture: "apertus",
	Config: map[string]any{
		"model_type": "apertus", "architectures": []string{"ApertusForCausalLM"}, "hidden_act": "xielu",
	},
	Keys: ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues,
		ggufLinears(GGUFOp{}, "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj"), ggufNames(GGUFOp{},
			"attn_norm.weight", "attention_layernorm.weight", "ffn_norm.weight", "feedforward_layernorm.weight",
			"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")),
	Numbers: []GGUFKey{
		{Key: "xielu.alpha_p", To: "model.layers.*.mlp.act_fn.alpha_p"},
		{Key: "xielu.alpha_n", To: "model.layers.*.mlp.act_fn.alpha_n"},
		{Key: "xielu.beta", To: "model.layers.*.mlp.act_fn.beta"},
		{Key: "xielu.eps", To: "model.layers.*.mlp.act_fn.eps"},
	},
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		if err := ggufFactorsRope(c, f); err != nil {
			return err
		}
		if c["rope_scaling"] == nil {
			c["rope_scaling"] = map[string]any{"rope_type": "default"} // without one the type has a rope of its own
		}
		return nil
	},
}
