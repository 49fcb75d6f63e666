package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufFull reads which layers are attention, by their tensors, and the number of their key heads. In a file, the other
// layers have 0 of them.
func ggufFull(c map[string]any, f GGUFFile) ([]bool, error) {
	layers, err := ggufLayers(c)
	full := make([]bool, layers)
	for i := range full {
		_, full[i] = f.Shape(fmt.Sprintf("blk.%d.attn_q.weight", i))
	}
	if list, ok := c["num_key_value_heads"].([]any); ok {
		c["num_key_value_heads"] = c["num_attention_heads"]
		for i, heads := range list {
			if i < layers && full[i] {
				c["num_key_value_heads"] = heads
			}
		}
	}
	return full, err
}

// ggufAny reports whether any layer of a file has a tensor.
func ggufAny(c map[string]any, f GGUFFile, name string) bool {
	layers, _ := ggufLayers(c)
	for i := range layers {
		if _, ok := f.Shape(fmt.Sprintf("blk.%d.%s", i, name)); ok {
			return true
		}
	}
	return false
}

// kvHeads are the key heads of layers of which some are attention.
func kvHeads(heads int, full []bool) GGUFPair {
	list := make([]int, len(full))
	for i := range list {
		if full[i] {
			list[i] = heads
		}
	}
	return GGUFPair{"attention.head_count_kv", list}
}

// ggufAttention are attention's tensors without norms.
var ggufAttention = slices.Concat(ggufQK, ggufValues)

// ggufFeedForward are a gated block and experts that are called feed_forward.
var ggufFeedForward = slices.Concat(
	ggufLinears(GGUFOp{}, "ffn_gate", "feed_forward.gate_proj", "ffn_up", "feed_forward.up_proj",
		"ffn_down", "feed_forward.down_proj"),
	ggufNames(GGUFOp{}, "ffn_gate_inp.weight", "feed_forward.gate.weight",
		"exp_probs_b.bias", "feed_forward.gate.e_score_correction_bias"),
	ggufStacked("feed_forward.experts", "feed_forward.switch_mlp"))

// ggufJamba is the mapping of jamba.
var ggufJamba = GGUF{
	Architecture: "jamba",
	Limits:       GGUFLimits{Square: true, AnySparse: true},
	Config:       map[string]any{"model_type": "jamba", "architectures": []string{"JambaForCausalLM"}},
	Keys: append(ggufKeys(
		GGUFKey{Key: "expert_count", To: "num_experts", Field: "Experts.Count", Optional: true},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true},
	), ggufChannelKeys("mamba_d_conv", "mamba_d_state", "mamba_dt_rank")...),
	Tensors: slices.Concat([]GGUFTensor{
		{Name: "output_norm.weight", To: "model.final_layernorm.weight"},
	}, ggufEnds(GGUFOp{}), ggufAttention, ggufChannelSSM("mamba"), ggufFeedForward, ggufNames(GGUFOp{},
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		full, err := ggufFull(c, f)
		if err != nil {
			return err
		}
		if c["attn_layer_period"], c["attn_layer_offset"], err = periodOf(full, "attention"); err != nil {
			return err
		}
		sparse := make([]bool, len(full))
		for i := range sparse {
			_, sparse[i] = f.Shape(fmt.Sprintf("blk.%d.ffn_gate_inp.weight", i))
		}
		if c["expert_layer_period"], c["expert_layer_offset"], err = periodOf(sparse, "experts"); err != nil {
			return err
		}
		if !slices.Contains(sparse, true) {
			c["num_experts"] = 1
		}
		return adjustChannels(c, "jamba", f)
	},
	Also: func(m Model) []GGUFPair {
		q, ok := m.(*Jamba)
		if !ok {
			return nil
		}
		return []GGUFPair{
			kvHeads(q.KVHeads, q.Full), {"ssm.inner_size", q.SSM.Width}, {"expert_count", q.Mixture.Experts.Count},
			{"expert_used_count", q.Mixture.Experts.PerToken},
		}
	},
	Refuse: func(m Model) string {
		if q, ok := m.(*Jamba); ok {
			return q.SSM.refuses(q.Hidden)
		}
		return ""
	},
}

// periodOf returns the period of the layers that are set, and the first of them.
func periodOf(set []bool, what string) (period, offset int, err error) {
	offset = slices.Index(set, true)
	if offset < 0 { // none: the period is longer than the model
		return maxLayers, maxLayers - 1, nil
	}
	period = len(set)
	if next := slices.Index(set[offset+1:], true); next >= 0 {
		period = next + 1
	}
	period = max(period, offset+1)
	for i := range set {
		if set[i] != (i%period == offset) {
			return 0, 0, fmt.Errorf("%w: layers with %s are not at equal distances (layer %d)", ErrGGUF, what, i)
		}
	}
	return period, offset, nil
}

// The mappings of lfm2 and lfm2_moe. llama.cpp takes the weights of experts to sum to 1, and does not scale them.
var (
	ggufLfm2    = lfm2Of("lfm2", "lfm2", "Lfm2ForCausalLM")
	ggufLfm2Moe = lfm2Of("lfm2moe", "lfm2_moe", "Lfm2MoeForCausalLM",
		GGUFKey{Key: "expert_count", To: "num_experts", Field: "Experts.Count"},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
		GGUFKey{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "leading_dense_block_count", To: "num_dense_layers"})
)

func lfm2Of(architecture, modelType, class string, more ...GGUFKey) GGUF {
	return GGUF{
		Architecture: architecture,
		Limits:       GGUFLimits{Square: true, Biases: noBiases},
		Config: map[string]any{
			"model_type": modelType, "architectures": []string{class}, "block_auto_adjust_ff_dim": false,
		},
		Keys: ggufKeys(append(more, GGUFKey{Key: "shortconv.l_cache", To: "conv_L_cache", Field: "Taps"})...),
		Tensors: slices.Concat([]GGUFTensor{
			{Name: ggufEmbedding, To: "model.embed_tokens.weight"}, {Name: ggufHead, To: "lm_head.weight"},
			{Name: "token_embd_norm.weight", To: "model.embedding_norm.weight"},
			{Name: "output_norm.weight", To: "model.embedding_norm.weight"}, // of newer versions
		}, ggufAttention, ggufFeedForward, ggufLinears(GGUFOp{}, "shortconv.conv", "conv.conv",
			"shortconv.in_proj", "conv.in_proj", "shortconv.out_proj", "conv.out_proj"), ggufNames(GGUFOp{},
			"attn_q_norm.weight", "self_attn.q_layernorm.weight", "attn_k_norm.weight", "self_attn.k_layernorm.weight",
			"attn_norm.weight", "operator_norm.weight", "ffn_norm.weight", "ffn_norm.weight")),
		Adjust: func(c map[string]any, f GGUFFile) error {
			if v, ok := f.Value(architecture + ".attention.sliding_window"); ok && v != json.Number("0") {
				return fmt.Errorf("%s.attention.sliding_window = %v: %w: %s with a window", architecture, shown(v),
					ErrUnknownArchitecture, modelType)
			}
			full, err := ggufFull(c, f)
			kinds := make([]string, len(full))
			for i := range kinds {
				if kinds[i] = convLayer; full[i] {
					kinds[i] = fullAttention
				}
			}
			c["layer_types"] = kinds
			c["conv_bias"] = ggufAny(c, f, "shortconv.conv.bias")
			c["use_expert_bias"] = ggufAny(c, f, "exp_probs_b.bias")
			return err
		},
		Also: alsoLfm2,
		Refuse: func(m Model) string {
			q, _ := lfm2Model(m)
			x, ok := fieldOf[Mixture](m, "Mixture")
			switch {
			case q.ConvBias:
				return "has no biases of convolutions"
			case ok && !x.Router.Correction:
				return "has a correction of the router's scores"
			}
			return ""
		},
	}
}

func lfm2Model(m Model) (Lfm2, bool) {
	switch q := m.(type) {
	case *Lfm2:
		return *q, true
	case *Lfm2Moe:
		return q.Lfm2, true
	}
	return Lfm2{}, false
}

func alsoLfm2(m Model) []GGUFPair {
	q, ok := lfm2Model(m)
	if !ok {
		return nil
	}
	return []GGUFPair{kvHeads(q.KVHeads, q.Full)}
}
