package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufCount is the number of experts.
func ggufCount(to string, more ...GGUFKey) []GGUFKey {
	return ggufKeys(append([]GGUFKey{
		{Key: "expert_count", To: to, Field: "Experts.Count"},
		{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
	}, more...)...)
}

// ggufGrouped are the keys of DeepSeek's router, which some other models have.
func ggufGrouped(count, shared string) []GGUFKey {
	return ggufCount(count,
		GGUFKey{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "expert_shared_count", To: shared, Optional: true},
		GGUFKey{Key: "expert_group_count", To: "n_group", Field: "Router.Groups", Optional: true},
		GGUFKey{Key: "expert_group_used_count", To: "topk_group", Field: "Router.TopGroups", Optional: true},
		GGUFKey{Key: "expert_weights_scale", To: "routed_scaling_factor", Field: "Router.Scaling", Optional: true},
		GGUFKey{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		GGUFKey{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
	)
}

// ggufShared are the shared experts, and the correction of a router.
var ggufShared = append(ggufNames(GGUFOp{}, "exp_probs_b.bias", "mlp.gate.e_score_correction_bias"),
	ggufLinears(GGUFOp{}, "ffn_gate_shexp", "mlp.shared_experts.gate_proj",
		"ffn_up_shexp", "mlp.shared_experts.up_proj", "ffn_down_shexp", "mlp.shared_experts.down_proj")...)

// ggufHeadNorms are norms of queries and keys.
var ggufHeadNorms = ggufNames(GGUFOp{},
	"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")

// ggufQwen2Moe is the mapping of qwen2_moe. llama.cpp does not normalize the weights of the experts.
var ggufQwen2Moe = GGUF{
	Architecture: "qwen2moe",
	Limits:       GGUFLimits{Square: true, OwnHead: true},
	Config: map[string]any{
		"model_type": "qwen2_moe", "architectures": []string{"Qwen2MoeForCausalLM"}, "use_sliding_window": false,
		"norm_topk_prob": false,
	},
	Keys: ggufCount("num_experts",
		GGUFKey{
			Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate", Optional: true,
		},
		GGUFKey{
			Key: "expert_shared_feed_forward_length", To: "shared_expert_intermediate_size", Field: "Shared", Optional: true,
		}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms, ggufMoE, ggufNames(GGUFOp{},
		"ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight",
		"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight",
		"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight",
		"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["qkv_bias"] = f.Shape("blk.0.attn_q.bias")
		return ggufDenseLayers(c, f)
	},
}

// ggufOlmoe is the mapping of olmoe. llama.cpp does not normalize the weights of the experts.
var ggufOlmoe = GGUF{
	Architecture: "olmoe",
	Limits:       GGUFLimits{Square: true, OwnHead: true},
	Config: map[string]any{
		"model_type": "olmoe", "architectures": []string{"OlmoeForCausalLM"}, "norm_topk_prob": false,
	},
	Keys:    ggufCount("num_experts", ggufClip),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufPreNorms, ggufMoE, ggufHeadNorms),
	Adjust:  ggufBiases,
}

// ggufGraniteMoe is the mapping of granitemoe, which has the changes of llama.
var ggufGraniteMoe = GGUF{
	Architecture: "granitemoe",
	Limits:       GGUFLimits{Biases: allBiases},
	Config: map[string]any{
		"model_type": "granitemoe", "architectures": []string{"GraniteMoeForCausalLM"},
	},
	Keys: ggufCount("num_local_experts",
		GGUFKey{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
		GGUFKey{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
		GGUFKey{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
		GGUFKey{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufPreNorms, ggufMoE),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if v, ok := f.Value("granitemoe.expert_shared_feed_forward_length"); ok && v != json.Number("0") {
			return fmt.Errorf("granitemoe.expert_shared_feed_forward_length = %v: %w: granitemoe with shared experts",
				shown(v), ErrUnknownArchitecture)
		}
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufFactorsRope(c, f)
	},
}

// ggufGlm4Moe is the mapping of glm4_moe. Models of solar_open, which compute the same, have it too.
var ggufGlm4Moe = GGUF{
	Architecture: "glm4moe",
	Config: map[string]any{
		"model_type": "glm4_moe", "architectures": []string{"Glm4MoeForCausalLM"}, "num_nextn_predict_layers": 0,
	},
	Keys: ggufGrouped("n_routed_experts", "n_shared_experts"),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufMoE, ggufShared, ggufHeadNorms,
		ggufNames(GGUFOp{}, "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight")),
	Next: []GGUFTensor{{
		Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust: func(c map[string]any, f GGUFFile) error {
		const architecture = "glm4moe"
		_, c["use_qk_norm"] = f.Shape("blk.0.attn_q_norm.weight")
		if err := ggufPartial(c, architecture, f); err != nil {
			return err
		}
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		if err := dropNext(c, architecture, f); err != nil {
			return err
		}
		return ggufSparse(c, f)
	},
}

// ggufDots1 is the mapping of dots1. llama.cpp has no window for it.
var ggufDots1 = GGUF{
	Architecture: "dots1",
	Limits:       GGUFLimits{OwnHead: true},
	Config: map[string]any{
		"model_type": "dots1", "architectures": []string{"Dots1ForCausalLM"}, "sliding_window": nil,
	},
	Keys: ggufGrouped("n_routed_experts", "n_shared_experts"),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufMoE, ggufShared, ggufHeadNorms,
		ggufPreNorms),
	Adjust: ggufBiases,
	Refuse: func(m Model) string {
		if c := commonOf(m); c.KVHeads != c.Heads {
			return "has as many key heads as query heads"
		}
		return ""
	},
}

// ggufMiniMaxM2 is the mapping of minimax_m2.
var ggufMiniMaxM2 = GGUF{
	Architecture: "minimax-m2",
	Limits:       GGUFLimits{OwnHead: true},
	Config: map[string]any{
		"model_type": "minimax_m2", "architectures": []string{"MiniMaxM2ForCausalLM"},
	},
	Keys: ggufCount("num_local_experts",
		GGUFKey{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufPreNorms, ggufMoE, ggufShared, ggufHeadNorms),
	Adjust:  func(c map[string]any, f GGUFFile) error { return ggufPartial(c, "minimax-m2", f) },
}

// ggufErnie45Moe is the mapping of ernie4_5_moe, which has the changes of llama: rows of heads are in halves there.
var ggufErnie45Moe = GGUF{
	Architecture: "ernie4_5-moe",
	Limits:       GGUFLimits{Biases: biasesOfAttention},
	Config: map[string]any{
		"model_type": "ernie4_5_moe", "architectures": []string{"Ernie4_5_MoeForCausalLM"},
	},
	Keys: ggufCount("moe_num_experts",
		GGUFKey{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "expert_shared_count", To: "moe_num_shared_experts", Optional: true},
		GGUFKey{Key: "leading_dense_block_count", To: "moe_layer_start_index", Optional: true},
		GGUFKey{Key: "interleave_moe_layer_step", To: "moe_layer_interval", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms, ggufMoE, ggufShared,
		[]GGUFTensor{{Name: "output.bias", To: "lm_head.bias"}}),
	Adjust: func(c map[string]any, f GGUFFile) error {
		_, c["use_bias"] = f.Shape("blk.0.attn_q.bias")
		return nil
	},
}

// ggufAfmoe is the mapping of afmoe.
var ggufAfmoe = GGUF{
	Architecture: "afmoe",
	Config: map[string]any{
		"model_type": "afmoe", "architectures": []string{"AfmoeForCausalLM"}, "mup_enabled": true,
	},
	Keys: ggufCount("num_experts",
		GGUFKey{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "expert_shared_count", To: "num_shared_experts", Optional: true},
		GGUFKey{Key: "expert_weights_scale", To: "route_scale", Field: "Router.Scaling", Optional: true},
		GGUFKey{Key: "leading_dense_block_count", To: "num_dense_layers", Optional: true},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufMoE, ggufShared, ggufHeadNorms,
		ggufNames(GGUFOp{},
			"attn_gate.weight", "self_attn.gate_proj.weight", "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight", "ffn_norm.weight", "pre_mlp_layernorm.weight",
			"post_ffw_norm.weight", "post_mlp_layernorm.weight")),
	Refuse: func(m Model) string {
		if q, ok := m.(*Afmoe); ok && !slices.Equal(q.Sliding, everyFull(q.Layers, 4)) {
			return "has a full layer, without rope, after every three sliding ones"
		}
		return ""
	},
	Adjust: func(c map[string]any, f GGUFFile) error {
		ggufSliding(c, "afmoe", f)
		return ggufBiases(c, f)
	},
}

// ggufGptOss is the mapping of gpt_oss. Files do not say that the corrections of yarn are not rounded.
var ggufGptOss = GGUF{
	Architecture: "gpt-oss",
	Limits:       GGUFLimits{Biases: biasesOfAttention, Unrounded: true},
	Config: map[string]any{
		"model_type": "gpt_oss", "architectures": []string{"GptOssForCausalLM"}, "attention_bias": true,
	},
	Keys: ggufCount("num_local_experts",
		GGUFKey{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate", Optional: true},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues,
		ggufLinears(GGUFOp{}, "ffn_gate_inp", "mlp.router", "ffn_gate_exps", "mlp.experts.gate_proj",
			"ffn_up_exps", "mlp.experts.up_proj", "ffn_down_exps", "mlp.experts.down_proj"),
		ggufNames(GGUFOp{}, "attn_sinks.weight", "self_attn.sinks", "attn_norm.weight", "input_layernorm.weight",
			"post_attention_norm.weight", "post_attention_layernorm.weight")),
	Adjust: func(c map[string]any, _ GGUFFile) error {
		if rope, ok := c["rope_scaling"].(map[string]any); ok {
			rope["truncate"] = false
		}
		return nil
	},
}

// ggufCohere2Moe is the mapping of cohere2_moe.
var ggufCohere2Moe = GGUF{
	Architecture: "cohere2moe",
	Config: map[string]any{
		"model_type": "cohere2_moe", "architectures": []string{"Cohere2MoeForCausalLM"},
	},
	Keys: append(ggufEps("layer_norm_eps"),
		GGUFKey{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps", Optional: true},
		GGUFKey{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
		GGUFKey{Key: "expert_feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "expert_shared_count", To: "num_shared_experts", Optional: true},
		GGUFKey{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		GGUFKey{Key: "feed_forward_length", To: "prefix_dense_intermediate_size", Field: "Intermediate", Optional: true},
		GGUFKey{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"},
		logitScale),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufMoE, ggufShared,
		ggufNames(GGUFOp{}, "attn_norm.weight", "input_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		const architecture = "cohere2moe"
		if v, _ := f.Value(architecture + ".expert_gating_func"); v == json.Number("2") {
			c["expert_selection_fn"] = "sigmoid"
		}
		ggufSliding(c, architecture, f)
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufSparse(c, f)
	},
}

// ggufExaoneMoe is the mapping of exaone_moe.
var ggufExaoneMoe = GGUF{
	Architecture: "exaone-moe",
	Limits:       GGUFLimits{OwnHead: true},
	Config: map[string]any{
		"model_type": "exaone_moe", "architectures": []string{"ExaoneMoeForCausalLM"},
	},
	Keys: append(ggufGrouped("num_experts", "num_shared_experts"),
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufMoE, ggufShared, ggufHeadNorms,
		ggufPreNorms),
	Next: []GGUFTensor{{
		Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust: func(c map[string]any, f GGUFFile) error {
		ggufSliding(c, "exaone-moe", f)
		if err := dropNext(c, "exaone-moe", f); err != nil {
			return err
		}
		return ggufSparse(c, f)
	},
}

// ggufHunYuanMoe is the mapping of hunyuan_v1_moe.
var ggufHunYuanMoe = hunYuanMoe()

func hunYuanMoe() GGUF {
	g := hunYuan("hunyuan-moe", "hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM",
		GGUFKey{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		GGUFKey{Key: "expert_used_count", To: "moe_topk", Field: "Experts.PerToken"})
	g.Tensors = slices.Concat(g.Tensors, ggufMoE, ggufShared)
	return g
}

// everyFull returns which layers slide if every n-th is a full one.
func everyFull(layers, n int) []bool {
	sliding := make([]bool, layers)
	for i := range sliding {
		sliding[i] = (i+1)%n != 0
	}
	return sliding
}
