package arch

import "slices"

// ggufGPT2 is the mapping of gpt2. Its matrices are no longer transposed.
var ggufGPT2 = GGUF{
	Architecture: "gpt2",
	Config:       map[string]any{"model_type": "gpt2", "architectures": []string{"GPT2LMHeadModel"}},
	Keys: []GGUFKey{
		{Key: "block_count", To: "n_layer"},
		{Key: "context_length", To: "n_positions"},
		{Key: "embedding_length", To: "n_embd"},
		{Key: "feed_forward_length", To: "n_inner", Optional: true},
		{Key: "attention.head_count", To: "n_head"},
		{Key: "attention.layer_norm_epsilon", To: "layer_norm_epsilon"},
	},
	Tensors: slices.Concat([]GGUFTensor{
		{Name: ggufEmbedding, To: "model.wte.weight"},
		{Name: "position_embd.weight", To: "model.wpe.weight"},
		{Name: "output_norm.weight", To: "model.ln_f.weight"},
		{Name: "output_norm.bias", To: "model.ln_f.bias"},
		{Name: ggufHead, To: "lm_head.weight"},
	}, ggufUnder("model.h.*.", ggufLinears(GGUFOp{},
		"attn_norm", "ln_1", "attn_qkv", "attn.c_attn", "attn_output", "attn.c_proj",
		"ffn_norm", "ln_2", "ffn_up", "mlp.c_fc", "ffn_down", "mlp.c_proj"))),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if shape, ok := f.Shape("blk.0.ffn_up.weight"); ok { // the converter always writes 4 times embedding_length
			c["n_inner"] = shape[0]
		}
		return nil
	},
}

// ggufGPTNeoX is the mapping of gpt_neox. Its queries, keys and values are no longer in the order of heads.
var ggufGPTNeoX = GGUF{
	Architecture: "gptneox",
	Config:       map[string]any{"model_type": "gpt_neox", "architectures": []string{"GPTNeoXForCausalLM"}},
	Keys: append(ggufEps("layer_norm_eps"),
		GGUFKey{Key: "use_parallel_residual", To: "use_parallel_residual", Optional: true}),
	Tensors: slices.Concat([]GGUFTensor{
		{Name: ggufEmbedding, To: "gpt_neox.embed_in.weight"},
		{Name: "output_norm.weight", To: "gpt_neox.final_layer_norm.weight"},
		{Name: "output_norm.bias", To: "gpt_neox.final_layer_norm.bias"},
		{Name: ggufHead, To: "embed_out.weight"},
	}, ggufUnder("gpt_neox.layers.*.", slices.Concat(
		ggufLinears(headsOfParts, "attn_qkv", "attention.query_key_value"),
		ggufLinears(GGUFOp{}, "attn_norm", "input_layernorm", "attn_output", "attention.dense",
			"ffn_norm", "post_attention_layernorm", "ffn_up", "mlp.dense_h_to_4h", "ffn_down", "mlp.dense_4h_to_h")))),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["attention_bias"] = f.Shape("blk.0.attn_qkv.bias")
		err := ggufPartial(c, "gptneox", f)
		c["rotary_pct"] = c["partial_rotary_factor"]
		delete(c, "partial_rotary_factor")
		return err
	},
}

// ggufUnder replaces the prefix of layers in the names of a checkpoint.
func ggufUnder(prefix string, list []GGUFTensor) []GGUFTensor {
	const usual = "model.layers.*."
	for i := range list {
		list[i].To = prefix + list[i].To[len(usual):]
	}
	return list
}

// headsOfParts undoes the order of queries, keys and values one after the other: it puts those of a head together.
var headsOfParts = GGUFOp{What: "the rows of each head together", Rows: func(m Model, rows int64) []int64 {
	d, ok := m.(interface{ common() Common })
	if !ok {
		return nil
	}
	dim := max(rows/int64(3*d.common().Heads), 1)
	order := make([]int64, rows)
	for i := range order {
		head, part, at := int64(i)/(3*dim), int64(i)/dim%3, int64(i)%dim
		order[i] = part*(rows/3) + head*dim + at
	}
	return order
}}
