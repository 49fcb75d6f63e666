package arch

import (
	"fmt"
	"slices"
	"strings"
)

// The mappings of llama.cpp's granitehybrid, which has the changes of llama: Granite 4 with experts and without, and
// Bamba, whose attention has a rope.
var (
	ggufGraniteHybrid = graniteHybrid(true, ggufMoE,
		GGUFKey{Key: "feed_forward_length", To: "intermediate_size", Field: "Experts.Intermediate"},
		GGUFKey{Key: "expert_count", To: "num_local_experts", Field: "Experts.Count"},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
		GGUFKey{Key: "expert_shared_feed_forward_length", To: "shared_intermediate_size", Field: "Shared"})
	ggufGraniteHybridDense = graniteHybrid(false, nil,
		GGUFKey{Key: "expert_shared_feed_forward_length", To: "shared_intermediate_size", Field: "Shared", Optional: true})
	ggufBamba = GGUF{
		Architecture: "granitehybrid",
		When:         func(f GGUFFile) bool { return ggufRotates(f) && !ggufScales(f) },
		Limits:       GGUFLimits{Biases: allBiases, Square: true},
		Config:       map[string]any{"model_type": "bamba", "architectures": []string{"BambaForCausalLM"}},
		Keys:         ggufKeys(ggufHybridSSM...),
		Tensors: slices.Concat([]GGUFTensor{{Name: "output_norm.weight", To: "model.final_layernorm.weight"}},
			ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufSSM("mamba"), ggufFeedForward, ggufNames(GGUFOp{},
				"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
		Adjust: func(c map[string]any, f GGUFFile) error {
			full, err := ggufFull(c, f)
			if err != nil {
				return err
			}
			attention := []int{}
			for i := range full {
				if full[i] {
					attention = append(attention, i)
				}
			}
			c["attn_layer_indices"] = attention
			if err := ggufHybridBiases(c, "granitehybrid", f); err != nil {
				return err
			}
			_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
			c["head_dim"] = nil // hidden_size/num_attention_heads
			return ggufPartial(c, "granitehybrid", f)
		},
		Also: func(m Model) []GGUFPair {
			q, ok := m.(*Bamba)
			if !ok {
				return nil
			}
			return []GGUFPair{kvHeads(q.KVHeads, q.Full), {"ssm.inner_size", q.SSM.Width()}, {"rope.scaling.finetuned", true}}
		},
		Refuse: func(m Model) string {
			q, ok := m.(*Bamba)
			switch {
			case ok && q.Rope.PartialFactor != 1:
				return "rotates all channels of a head"
			case ok:
				return graniteWidth(m, q.SSM, q.Hidden)
			}
			return ""
		},
	}
)

// ggufRotates reports whether the attention of a granitehybrid has a rope.
func ggufRotates(f GGUFFile) bool {
	v, _ := f.Value("granitehybrid.rope.scaling.finetuned")
	return v != false
}

// ggufScales reports whether a granitehybrid has Granite's multipliers.
func ggufScales(f GGUFFile) bool {
	_, ok := f.Value("granitehybrid.attention.scale")
	return ok
}

// graniteWidth says why llama.cpp cannot compute a layer; "" = it can.
func graniteWidth(m Model, d SSM, hidden int) string {
	if d.Width() != 2*hidden {
		return "has Mamba layers of twice the width of the model"
	}
	return refuseSSM(m)
}

// graniteHybrid is the mapping of Granite 4 with the given tensors of experts or without. The MLP of all tokens is the
// shared expert, or else the layer's only one.
func graniteHybrid(experts bool, tensors []GGUFTensor, more ...GGUFKey) GGUF {
	kind := ""
	if experts {
		kind = "_shexp"
	}
	tensors = slices.Clone(tensors)
	for i := range tensors {
		tensors[i].To = strings.Replace(tensors[i].To, ".mlp.", ".block_sparse_moe.", 1)
	}
	const architecture = "granitehybrid"
	return GGUF{
		Architecture: architecture,
		When: func(f GGUFFile) bool {
			_, ok := f.Shape("blk.0.ffn_gate_inp.weight")
			return ok == experts && (ggufScales(f) || !ggufRotates(f))
		},
		For: func(m Model) bool {
			q, ok := m.(*GraniteMoeHybrid)
			return ok && (q.Mixture != nil) == experts
		},
		Limits: GGUFLimits{Biases: biasesOfAttention, Square: true},
		Config: map[string]any{
			"model_type": "granitemoehybrid", "architectures": []string{"GraniteMoeHybridForCausalLM"},
			"num_local_experts": 0,
		},
		Keys: ggufKeys(slices.Concat(ggufHybridSSM, []GGUFKey{
			{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
			{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
			{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
			{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
		}, more)...),
		Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufSSM("mamba"), ggufPreNorms, tensors,
			ggufNames(GGUFOp{}, "ffn_gate"+kind+".weight", "shared_mlp.gate_proj.weight",
				"ffn_up"+kind+".weight", "shared_mlp.up_proj.weight", "ffn_down"+kind+".weight", "shared_mlp.down_proj.weight")),
		Adjust: func(c map[string]any, f GGUFFile) error {
			full, err := ggufFull(c, f)
			if err != nil {
				return err
			}
			kinds := make([]string, len(full))
			for i := range kinds {
				if kinds[i] = mambaLayer; full[i] {
					kinds[i] = attentionLayer
				}
			}
			c["layer_types"], c["position_embedding_type"] = kinds, "nope"
			if ggufRotates(f) {
				c["position_embedding_type"] = "rope"
			}
			if shape, ok := f.Shape("blk.0.ffn_up" + kind + ".weight"); ok && len(shape) == 2 {
				c["shared_intermediate_size"] = shape[0]
			}
			return ggufHybridBiases(c, architecture, f)
		},
		Also: func(m Model) []GGUFPair {
			q, ok := m.(*GraniteMoeHybrid)
			if !ok {
				return nil
			}
			pairs := []GGUFPair{
				kvHeads(q.KVHeads, q.Full), {"ssm.inner_size", q.SSM.Width()}, {"rope.scaling.finetuned", !q.Unrotated},
			}
			if q.Mixture == nil {
				return append(pairs, GGUFPair{"feed_forward_length", q.Shared}, GGUFPair{"expert_count", 0})
			}
			return pairs
		},
		Refuse: func(m Model) string {
			q, ok := m.(*GraniteMoeHybrid)
			if !ok {
				return ""
			}
			return graniteWidth(m, q.SSM, q.Hidden)
		},
	}
}

// ggufFalconH1 is the mapping of falcon_h1. The converter multiplies the weights by the multipliers.
var ggufFalconH1 = GGUF{
	Architecture: "falcon-h1",
	Limits:       GGUFLimits{Biases: biasesOfQKV},
	Config: map[string]any{
		"model_type": "falcon_h1", "architectures": []string{"FalconH1ForCausalLM"}, "mamba_norm_before_gate": false,
	},
	Keys: ggufKeys(ggufHybridSSM...),
	Tensors: slices.Concat([]GGUFTensor{
		{Name: "output_norm.weight", To: "model.final_layernorm.weight"},
		{Name: "blk.*.ffn_norm", To: "model.layers.*.pre_ff_layernorm.weight"},
	}, ggufEnds(GGUFOp{}), ggufAttention, ggufSSM("mamba"), ggufFeedForward, ggufNames(GGUFOp{},
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "pre_ff_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := ggufHybridBiases(c, "falcon-h1", f); err != nil {
			return err
		}
		c["mamba_d_ssm"], _ = f.Value("falcon-h1.ssm.inner_size")
		c["projectors_bias"] = ggufAny(c, f, "ssm_out.bias")
		c["mamba_rms_norm"] = ggufAny(c, f, "ssm_norm.weight")
		_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
		return nil
	},
	Also: func(m Model) []GGUFPair {
		q, ok := m.(*FalconH1)
		if !ok {
			return nil
		}
		return []GGUFPair{{"ssm.inner_size", q.SSM.Width()}}
	},
	Refuse: refuseSSM,
}

// The mappings of nemotron_h without experts and with them.
var (
	ggufNemotronH    = nemotronHOf("nemotron_h", false)
	ggufNemotronHMoe = nemotronHOf("nemotron_h_moe", true,
		append(ggufGrouped("n_routed_experts", "n_shared_experts"),
			GGUFKey{
				Key: "expert_shared_feed_forward_length", To: "moe_shared_expert_intermediate_size", Field: "Shared",
			},
			GGUFKey{Key: "moe_latent_size", To: "moe_latent_size", Field: "Mixture.Latent", Optional: true})...)
)

func nemotronHOf(architecture string, experts bool, more ...GGUFKey) GGUF {
	keys := more
	if !experts {
		keys = ggufKeys()
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k GGUFKey) bool {
		return slices.Contains([]string{
			"attention.layer_norm_rms_epsilon", "rope.freq_base", "leading_dense_block_count", "feed_forward_length",
		}, k.Key)
	})
	return GGUF{
		Architecture: architecture,
		For: func(m Model) bool {
			q, ok := m.(*NemotronH)
			return ok && slices.Contains(q.Kinds, NemotronHExperts) == experts
		},
		Limits: GGUFLimits{Biases: allBiases, AnySparse: true},
		Config: map[string]any{"model_type": "nemotron_h", "architectures": []string{"NemotronHForCausalLM"}},
		Keys: slices.Concat(keys, ggufSSMKeys("conv_kernel", "ssm_state_size", "n_groups", "mamba_num_heads"), []GGUFKey{
			{Key: "attention.layer_norm_rms_epsilon", To: "layer_norm_epsilon", Optional: true},
			{Key: "attention.layer_norm_epsilon", To: "layer_norm_epsilon", Field: "NormEps", Optional: true},
		}),
		Tensors: slices.Concat(ggufBackbone(), ggufUnder("backbone.layers.*.", slices.Concat(ggufSSM("mixer"),
			ggufLinears(pairsOf(func(c Common) int { return c.Heads }), "attn_q", "mixer.q_proj"),
			ggufLinears(pairsOf(func(c Common) int { return c.KVHeads }), "attn_k", "mixer.k_proj"),
			ggufLinears(GGUFOp{}, "attn_v", "mixer.v_proj", "attn_output", "mixer.o_proj",
				"ffn_up", "mixer.up_proj", "ffn_down", "mixer.down_proj",
				"ffn_up_shexp", "mixer.shared_experts.up_proj", "ffn_down_shexp", "mixer.shared_experts.down_proj",
				"ffn_latent_down", "mixer.fc1_latent_proj", "ffn_latent_up", "mixer.fc2_latent_proj"),
			ggufNames(GGUFOp{}, "ffn_gate_inp.weight", "mixer.gate.weight",
				"exp_probs_b.bias", "mixer.gate.e_score_correction_bias",
				"ffn_up_exps.weight", "mixer.switch_mlp.fc1.weight", "ffn_down_exps.weight", "mixer.switch_mlp.fc2.weight")))),
		Next: []GGUFTensor{{
			Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not supported for nemotron_h",
		}},
		Adjust: func(c map[string]any, f GGUFFile) error { return adjustNemotronH(c, architecture, f) },
		Also:   alsoNemotronH,
		Refuse: refuseNemotronH,
	}
}

func adjustNemotronH(c map[string]any, architecture string, f GGUFFile) error {
	if err := dropNext(c, architecture, f); err != nil {
		return err
	}
	full, err := ggufFull(c, f)
	if err != nil {
		return err
	}
	var pattern strings.Builder
	for i := range full {
		kind := NemotronHMLP
		for name, of := range map[string]NemotronHLayer{"ssm_in": NemotronHScan, "ffn_gate_inp": NemotronHExperts} {
			if _, ok := f.Shape(fmt.Sprintf("blk.%d.%s.weight", i, name)); ok {
				kind = of
			}
		}
		if full[i] {
			kind = NemotronHAttention
		}
		if shape, ok := f.Shape(fmt.Sprintf("blk.%d.ffn_up.weight", i)); ok && len(shape) == 2 {
			c["intermediate_size"] = shape[0]
		}
		pattern.WriteByte(byte(kind))
	}
	c["hybrid_override_pattern"] = pattern.String()
	c["use_conv_bias"] = ggufAny(c, f, "ssm_conv1d.bias")
	c["use_bias"] = ggufAny(c, f, "ssm_in.bias")
	c["attention_bias"] = ggufAny(c, f, "attn_q.bias")
	c["mlp_bias"] = ggufAny(c, f, "ffn_up.bias") || ggufAny(c, f, "ffn_up_shexp.bias")
	if _, ok := c["head_dim"]; !ok {
		return fmt.Errorf("%w: %s.attention.key_length is missing", ErrGGUF, architecture)
	}
	if n, ok := c["expert_used_count"].([]any); ok {
		return fmt.Errorf("%s.expert_used_count = %v: %w: experts that differ by layer", architecture, n,
			ErrUnknownArchitecture)
	}
	return ggufInner(c, architecture, f, "mamba_num_heads", "mamba_head_dim", "expand")
}

func alsoNemotronH(m Model) []GGUFPair {
	q, ok := m.(*NemotronH)
	if !ok {
		return nil
	}
	full, widths := make([]bool, len(q.Kinds)), make([]int, len(q.Kinds))
	for i, kind := range q.Kinds {
		switch full[i] = kind == NemotronHAttention; kind {
		case NemotronHMLP:
			widths[i] = q.Intermediate
		case NemotronHExperts:
			widths[i] = q.Mixture.Experts.Intermediate
		}
	}
	return []GGUFPair{
		kvHeads(q.KVHeads, full), {"feed_forward_length", widths}, {"ssm.inner_size", q.SSM.Width()},
		{"rope.scaling.finetuned", false},
	}
}

func refuseNemotronH(m Model) string {
	q, ok := m.(*NemotronH)
	switch {
	case ok && q.Mixture.LatentBias && q.Mixture.Latent > 0, ok && q.Mixture.SharedBias && q.Mixture.Shared > 0:
		return "has no biases of experts"
	}
	return refuseSSM(m)
}
