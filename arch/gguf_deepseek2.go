package arch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ggufDeepseek2 is the mapping of models with latent attention: DeepSeek V2 and V3, Kimi K2, GLM-4.7-Flash and Youtu.
// kv_b_proj is split into k_b, transposed, and v_b, as mlx-lm has it too. Older files have it whole.
var ggufDeepseek2 = GGUF{
	Architecture: "deepseek2",
	Config:       map[string]any{"num_nextn_predict_layers": 0, "q_lora_rank": nil},
	Limits:       GGUFLimits{Biases: noBiases},
	Keys: ggufKeys(
		GGUFKey{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true},
		GGUFKey{
			Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate", Optional: true,
		},
		GGUFKey{Key: "expert_count", To: "n_routed_experts", Field: "Experts.Count", Optional: true},
		GGUFKey{Key: "expert_shared_count", To: "n_shared_experts", Optional: true},
		GGUFKey{Key: "expert_group_count", To: "n_group", Field: "Router.Groups", Optional: true},
		GGUFKey{Key: "expert_group_used_count", To: "topk_group", Field: "Router.TopGroups", Optional: true},
		GGUFKey{Key: "expert_weights_scale", To: "routed_scaling_factor", Field: "Router.Scaling", Optional: true},
		GGUFKey{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		GGUFKey{Key: "attention.q_lora_rank", To: "q_lora_rank", Field: "Latent.QueryRank", Optional: true},
		GGUFKey{Key: "attention.kv_lora_rank", To: "kv_lora_rank", Field: "Latent.KVRank"},
		GGUFKey{Key: "attention.value_length_mla", To: "v_head_dim", Field: "Latent.ValueDim"},
		GGUFKey{Key: "rope.dimension_count", To: "qk_rope_head_dim", Field: "Latent.RopeDim"},
	),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufLatent(), ggufMoE, ggufShared),
	Next: []GGUFTensor{{
		Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not imported from GGUF files",
	}},
	Adjust:   adjustDeepseek2,
	Split:    splitLatent,
	Also:     alsoLatent,
	Refuse:   refuseLatent,
	LogScale: 0.1,
	Pre: func(m Model) string {
		if _, ok := m.(*Glm4MoeLite); ok {
			return "glm4"
		}
		return "default"
	},
}

// ggufLatent are the tensors of layers with latent attention and an MLP.
func ggufLatent() []GGUFTensor {
	return slices.Concat(ggufMLP, ggufPreNorms,
		ggufNames(GGUFOp{},
			"attn_q.weight", "self_attn.q_proj.weight", "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight",
			"attn_q_b.weight", "self_attn.q_b_proj.weight", "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight",
			"attn_kv_b.weight", "self_attn.kv_b_proj.weight",
			"attn_k_b.weight", "self_attn.embed_q.weight", "attn_v_b.weight", "self_attn.unembed_out.weight"),
		ggufLinears(GGUFOp{}, "attn_q_a", "self_attn.q_a_proj", "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa",
			"attn_output", "self_attn.o_proj"))
}

// latentClass returns the model type and the class of a file. Of the models that share the architecture, those without
// experts and those with other routers differ; GLM is known by its tokenizer.
func latentClass(f GGUFFile) (modelType, class string, err error) {
	const key = "deepseek2.expert_gating_func"
	gating, ok := f.Value(key)
	_, corrects := f.Shape("blk.1.exp_probs_b.bias")
	_, experts := f.Value("deepseek2.expert_count")
	pre, _ := f.Value("tokenizer.ggml.pre")
	isGLM := pre == "glm4" || pre == "chatglm-bpe"
	switch {
	case ok && gating != json.Number("0") && gating != json.Number("1") && gating != json.Number("2"):
		return "", "", fmt.Errorf("%w: %s = %v, want 1 (softmax) or 2 (sigmoid)", ErrGGUF, key, shown(gating))
	case isGLM && gating == json.Number("1"):
		return "", "", fmt.Errorf("%w: %s = 1 (softmax), want 2 (sigmoid) for GLM", ErrGGUF, key)
	case isGLM:
		return "glm4_moe_lite", "Glm4MoeLiteForCausalLM", nil
	case !experts:
		return "youtu", "YoutuForCausalLM", nil
	case gating == json.Number("2") || corrects:
		return "deepseek_v3", "DeepseekV3ForCausalLM", nil
	}
	return "deepseek_v2", "DeepseekV2ForCausalLM", nil
}

func adjustDeepseek2(c map[string]any, f GGUFFile) error {
	modelType, class, err := latentClass(f)
	if err != nil {
		return err
	}
	c["model_type"], c["architectures"] = modelType, []string{class}
	if groups, ok := c["n_group"]; modelType == "deepseek_v2" && ok && groups != json.Number("1") {
		c["topk_method"] = "group_limited_greedy"
	}
	if err := adjustLatent(c, "deepseek2", f); err != nil || modelType == "youtu" {
		return err
	}
	return ggufSparse(c, f)
}

// adjustLatent sets the sizes of latent attention, its yarn, and the number of layers.
func adjustLatent(c map[string]any, architecture string, f GGUFFile) error {
	v, _ := f.Value(architecture + ".attention.key_length_mla")
	n, _ := v.(json.Number)
	key, err := n.Int64()
	rope, errRope := number(c, "qk_rope_head_dim")
	if err != nil || errRope != nil || key <= rope {
		return fmt.Errorf("%w: %s.attention.key_length_mla = %v: want more than rope.dimension_count; convert it again "+
			"with a current llama.cpp", ErrGGUF, architecture, shown(v))
	}
	c["qk_nope_head_dim"], c["num_key_value_heads"] = key-rope, c["num_attention_heads"]
	delete(c, "head_dim")
	if _, ok := c["norm_topk_prob"]; !ok {
		c["norm_topk_prob"] = false
	}
	_, c["attention_bias"] = f.Shape("blk.0.attn_kv_a_mqa.bias")
	if scaling, ok := c["rope_scaling"].(map[string]any); ok {
		if v, ok := f.Value(architecture + ".rope.scaling.yarn_log_multiplier"); ok {
			n, _ := v.(json.Number)
			all, err := n.Float64()
			if err != nil {
				return fmt.Errorf("%w: %s.rope.scaling.yarn_log_multiplier = %v, want a number", ErrGGUF,
					architecture, shown(v))
			}
			scaling["mscale_all_dim"] = float32(all * 10) // see LogScale
			scaling["mscale"] = scaling["mscale_all_dim"]
		}
	}
	return dropNext(c, architecture, f)
}

// ggufSparse sets which layers have experts: those with a router.
func ggufSparse(c map[string]any, f GGUFFile) error {
	layers, err := ggufLayers(c)
	kinds := make([]string, layers)
	for i := range kinds {
		kinds[i] = "dense"
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i)); ok {
			kinds[i] = "sparse"
		}
	}
	c["mlp_layer_types"] = kinds
	return err
}

func alsoLatent(m Model) []GGUFPair {
	l, _ := fieldOf[Latent](m, "Latent")
	pairs := []GGUFPair{
		// llama.cpp computes in the latent: one key head of its width and the rotated channels.
		{"attention.head_count_kv", 1}, {"attention.key_length", l.KVRank + l.RopeDim},
		{"attention.value_length", l.KVRank}, {"attention.key_length_mla", l.NopeDim + l.RopeDim},
	}
	if x, _ := fieldOf[Mixture](m, "Mixture"); x.Experts.Count == 0 { // required, with no layer that has experts
		width, _ := fieldOf[int](m, "Intermediate")
		pairs = append(pairs, GGUFPair{"leading_dense_block_count", commonOf(m).Layers},
			GGUFPair{"expert_feed_forward_length", width}, GGUFPair{"expert_shared_count", 0})
	}
	return pairs
}

func refuseLatent(m Model) string {
	l, _ := fieldOf[Latent](m, "Latent")
	lite := []int{26, 27} // layers
	switch {
	case !l.Interleaved:
		return "rotates neighbouring channels, and the model the halves of a head"
	case l.QueryRank == 0 && !slices.Contains(lite, commonOf(m).Layers):
		return fmt.Sprintf("has a single query projection in models of %d and %d layers only", lite[0], lite[1])
	}
	return ""
}

// splitLatent makes k_b, with the two dimensions of a head exchanged, and v_b of kv_b.
func splitLatent(m Model, name string) []GGUFPiece {
	l, ok := fieldOf[Latent](m, "Latent")
	before, both := strings.CutSuffix(name, ".attn_kv_b.weight")
	if !ok || !both {
		return nil
	}
	heads, nope, value, rank := int64(commonOf(m).Heads), int64(l.NopeDim), int64(l.ValueDim), int64(l.KVRank)
	return []GGUFPiece{
		{before + ".attn_k_b.weight", []int64{heads, rank, nope}, func(i int64) int64 {
			head, r, n := i/(rank*nope), i/nope%rank, i%nope
			return (head*(nope+value)+n)*rank + r
		}},
		{before + ".attn_v_b.weight", []int64{heads, value, rank}, func(i int64) int64 {
			return i + (i/(value*rank)+1)*nope*rank
		}},
	}
}
