package arch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ggufGlm4MoeLite is the mapping of glm4_moe_lite, which has the architecture of DeepSeek V2 and V3 there. kv_b_proj is
// split into k_b, transposed, and v_b, as mlx-lm has it too. Older files have it whole.
var ggufGlm4MoeLite = GGUF{
	Architecture: "deepseek2",
	Limits:       GGUFLimits{Biases: noBiases},
	Config: map[string]any{
		"model_type": "glm4_moe_lite", "architectures": []string{"Glm4MoeLiteForCausalLM"},
		"num_nextn_predict_layers": 0, "q_lora_rank": nil,
	},
	Keys: ggufKeys(slices.Concat(ggufExperts, []GGUFKey{
		{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
		{Key: "expert_count", To: "n_routed_experts", Field: "Experts.Count"},
		{Key: "expert_shared_count", To: "n_shared_experts", Field: "SharedExperts", Optional: true},
		{Key: "expert_group_count", To: "n_group", Field: "Groups", Optional: true},
		{Key: "expert_group_used_count", To: "topk_group", Field: "TopGroups", Optional: true},
		{Key: "expert_weights_scale", To: "routed_scaling_factor", Field: "Scaling", Optional: true},
		{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		{Key: "attention.q_lora_rank", To: "q_lora_rank", Field: "QueryRank", Optional: true},
		{Key: "attention.kv_lora_rank", To: "kv_lora_rank", Field: "KVRank"},
		{Key: "attention.value_length_mla", To: "v_head_dim", Field: "ValueDim"},
		{Key: "rope.dimension_count", To: "qk_rope_head_dim", Field: "RopeDim"},
	})...),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufMLP, ggufMoE,
		ggufNames(GGUFOp{},
			"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight",
			"attn_q.weight", "self_attn.q_proj.weight", "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight",
			"attn_q_b.weight", "self_attn.q_b_proj.weight", "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight",
			"attn_kv_b.weight", "self_attn.kv_b_proj.weight",
			"attn_k_b.weight", "self_attn.embed_q.weight", "attn_v_b.weight", "self_attn.unembed_out.weight",
			"exp_probs_b.bias", "mlp.gate.e_score_correction_bias",
			"ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight",
			"ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight",
			"ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight"),
		ggufLinears(GGUFOp{}, "attn_q_a", "self_attn.q_a_proj", "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa",
			"attn_output", "self_attn.o_proj"),
	),
	Next: []GGUFTensor{{
		Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not supported for glm4_moe_lite",
	}},
	Adjust:   adjustGlm,
	Split:    splitLatent,
	Also:     alsoGlm,
	Refuse:   refuseGlm,
	Pre:      "glm4",
	LogScale: 0.1,
}

func adjustGlm(c map[string]any, f GGUFFile) error {
	const architecture = "deepseek2"
	if v, _ := f.Value("tokenizer.ggml.pre"); v != "glm4" && v != "chatglm-bpe" {
		return fmt.Errorf("general.architecture %q with the tokenizer %v: %w: only GLM-4.7 Flash (glm4) of this "+
			"architecture can be imported", architecture, v, ErrUnknownArchitecture)
	}
	if v, ok := f.Value(architecture + ".expert_gating_func"); ok && v != json.Number("2") {
		return fmt.Errorf("%w: %s.expert_gating_func = %v, want 2 (sigmoid)", ErrGGUF, architecture, v)
	}
	v, _ := f.Value(architecture + ".attention.key_length_mla")
	n, _ := v.(json.Number)
	key, err := n.Int64()
	rope, errRope := number(c, "qk_rope_head_dim")
	if err != nil || errRope != nil || key <= rope {
		return fmt.Errorf("%w: %s.attention.key_length_mla = %v: want more than rope.dimension_count; convert it again "+
			"with a current llama.cpp", ErrGGUF, architecture, v)
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
				return fmt.Errorf("%w: %s.rope.scaling.yarn_log_multiplier = %v, want a number", ErrGGUF, architecture, v)
			}
			scaling["mscale_all_dim"] = float32(all * 10) // see LogScale
			scaling["mscale"] = scaling["mscale_all_dim"]
		}
	}
	if err := dropNext(c, architecture, f); err != nil {
		return err
	}
	return ggufSparse(c, f)
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

func alsoGlm(m Model) []GGUFPair {
	q, ok := m.(*Glm4MoeLite)
	if !ok {
		return nil
	}
	return []GGUFPair{
		// llama.cpp computes in the latent: one key head of its width and the rotated channels.
		{"attention.head_count_kv", 1}, {"attention.key_length", q.KVRank + q.RopeDim},
		{"attention.value_length", q.KVRank}, {"attention.key_length_mla", q.NopeDim + q.RopeDim},
		{"expert_gating_func", 2},
	}
}

func refuseGlm(m Model) string {
	q, ok := m.(*Glm4MoeLite)
	switch {
	case ok && !q.Interleaved:
		return "rotates neighbouring channels, and the model the halves of a head"
	case ok && q.AttentionBias:
		return "has no biases"
	}
	return ""
}

// splitLatent makes k_b, with the two dimensions of a head exchanged, and v_b of kv_b.
func splitLatent(m Model, name string) []GGUFPiece {
	q, ok := m.(*Glm4MoeLite)
	before, both := strings.CutSuffix(name, ".attn_kv_b.weight")
	if !ok || !both {
		return nil
	}
	heads, nope, value, rank := int64(q.Heads), int64(q.NopeDim), int64(q.ValueDim), int64(q.KVRank)
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
