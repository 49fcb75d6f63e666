package arch

import "slices"

// ggufRwkv7 is the mapping of rwkv7, which is only imported. The first layer has copies of its rates' tensors in place
// of those of values, which it does not use.
var ggufRwkv7 = GGUF{
	Architecture: "rwkv7",
	ImportOnly:   true,
	Config:       map[string]any{"model_type": "rwkv7", "architectures": []string{"RWKV7ForCausalLM"}, "attn": nil},
	Keys: []GGUFKey{
		{Key: "block_count", To: "num_hidden_layers"},
		{Key: "context_length", To: "max_position_embeddings"},
		{Key: "embedding_length", To: "hidden_size"},
		{Key: "feed_forward_length", To: "intermediate_size"},
		{Key: "attention.layer_norm_epsilon", To: "norm_eps"},
		{Key: "wkv.head_size", To: "head_dim"},
		{Key: "attention.decay_lora_rank", To: "decay_low_rank_dim"},
		{Key: "attention.iclr_lora_rank", To: "a_low_rank_dim"},
		{Key: "attention.value_residual_mix_lora_rank", To: "v_low_rank_dim"},
		{Key: "attention.gate_lora_rank", To: "gate_low_rank_dim"},
	},
	Tensors: slices.Concat(rwkv7Ends(), ggufLinears(GGUFOp{}, "attn_norm", "attn_norm", "attn_norm_2", "ffn_norm",
		"time_mix_ln", "attn.g_norm"), ggufNames(GGUFOp{},
		"time_mix_lerp_fused.weight", "attn.x_x", "channel_mix_lerp_k.weight", "ffn.x_k",
		"time_mix_k_k.weight", "attn.k_k", "time_mix_k_a.weight", "attn.k_a", "time_mix_r_k.weight", "attn.r_k",
		"time_mix_receptance.weight", "attn.r_proj.weight", "time_mix_key.weight", "attn.k_proj.weight",
		"time_mix_value.weight", "attn.v_proj.weight", "time_mix_output.weight", "attn.o_proj.weight",
		"channel_mix_key.weight", "ffn.key.weight", "channel_mix_value.weight", "ffn.value.weight",
		"time_mix_g1.weight", "attn.g_lora.lora.0.weight", "time_mix_g2.weight", "attn.g_lora.lora.2.weight"),
		rwkv7Product("w"), rwkv7Product("a"), rwkv7Product("v")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["norm_first"] = f.Shape("token_embd_norm.weight")
		_, c["norm_bias"] = f.Shape("output_norm.bias")
		return nil
	},
}

func rwkv7Ends() []GGUFTensor {
	list := []GGUFTensor{
		{Name: ggufEmbedding, To: "model.embeddings.weight"}, {Name: ggufHead, To: "lm_head.weight"},
	}
	for _, end := range []string{".weight", ".bias"} {
		list = append(list, GGUFTensor{Name: "output_norm" + end, To: "model.norm" + end},
			GGUFTensor{Name: "token_embd_norm" + end, To: "model.layers.0.pre_norm" + end})
	}
	return list
}

// rwkv7Product are the two matrices of a product of low rank, and its bias.
func rwkv7Product(part string) []GGUFTensor {
	file, name := "time_mix_"+part, "attn."+part+"_lora.lora."
	return ggufNames(GGUFOp{}, file+"0.weight", name+"2.bias",
		file+"1.weight", name+"0.weight", file+"2.weight", name+"2.weight")
}
