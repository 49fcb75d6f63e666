package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufPlain is the mapping of a decoder with the names and norms of llama, whose elements are as in a checkpoint.
func ggufPlain(architecture, modelType, class string, more ...GGUFKey) GGUF {
	return GGUF{
		Architecture: architecture,
		Config:       map[string]any{"model_type": modelType, "architectures": []string{class}},
		Keys:         ggufKeys(more...),
		Tensors:      slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms),
		Adjust:       ggufBiases,
	}
}

var logitScale = GGUFKey{Key: "logit_scale", To: "logit_scale", Field: "LogitScale"}

// ggufCohere and ggufCohere2 are the mappings of cohere and cohere2.
var (
	ggufCohere  = cohereOf("command-r", "cohere", "CohereForCausalLM", logitScale)
	ggufCohere2 = cohereOf("cohere2", "cohere2", "Cohere2ForCausalLM", logitScale,
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"})
)

func cohereOf(architecture, modelType, class string, more ...GGUFKey) GGUF {
	g := ggufPlain(architecture, modelType, class)
	g.Keys = append(ggufEps("layer_norm_eps"), more...)
	g.Tensors = append(slices.Clone(g.Tensors), ggufNames(GGUFOp{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")...)
	g.Limits = GGUFLimits{Square: true, Tied: true}
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		_, c["use_qk_norm"] = f.Shape("blk.0.attn_q_norm.weight")
		ggufSliding(c, architecture, f)
		return ggufBiases(c, f)
	}
	return g
}

// ggufGlm4 is the mapping of glm4. Files of multimodal models have other elements, and are refused.
var ggufGlm4 = GGUF{
	Architecture: "glm4",
	Config:       map[string]any{"model_type": "glm4", "architectures": []string{"Glm4ForCausalLM"}},
	Keys:         ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufLinears(GGUFOp{},
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj"), ggufNames(GGUFOp{},
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_self_attn_layernorm.weight",
		"ffn_norm.weight", "post_attention_layernorm.weight", "post_ffw_norm.weight", "post_mlp_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if v, ok := f.Value("glm4.rope.dimension_sections"); ok {
			return fmt.Errorf("glm4.rope.dimension_sections = %v: %w: glm4 of a multimodal model", shown(v),
				ErrUnknownArchitecture)
		}
		if err := ggufPartial(c, "glm4", f); err != nil {
			return err
		}
		return ggufBiases(c, f)
	},
}

// ggufGlm is the mapping of glm.
var ggufGlm = GGUF{
	Architecture: "chatglm",
	Limits:       GGUFLimits{Square: true},
	Config:       map[string]any{"model_type": "glm", "architectures": []string{"GlmForCausalLM"}},
	Keys:         ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufPreNorms, ggufLinears(GGUFOp{},
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if _, ok := c["head_dim"]; !ok {
			c["head_dim"] = nil // hidden_size/num_attention_heads
		}
		if err := ggufPartial(c, "chatglm", f); err != nil {
			return err
		}
		return ggufBiases(c, f)
	},
}

// ggufPartial sets the part of a head that is rotated.
func ggufPartial(c map[string]any, architecture string, f GGUFFile) error {
	v, ok := f.Value(architecture + ".rope.dimension_count")
	if !ok {
		return nil
	}
	n, _ := v.(json.Number)
	rotated, err := n.Int64()
	dim, errDim := number(c, "head_dim")
	if c["head_dim"] == nil {
		hidden, errHidden := number(c, "hidden_size")
		heads, errHeads := number(c, "num_attention_heads")
		if errHidden == nil && errHeads == nil && heads > 0 {
			dim, errDim = hidden/heads, nil
		}
	}
	if err != nil || errDim != nil || dim < 1 {
		return fmt.Errorf("%w: %s.rope.dimension_count = %v: want a part of a head", ErrGGUF, architecture, shown(v))
	}
	c["partial_rotary_factor"] = float64(rotated) / float64(dim)
	return nil
}

// ggufExaone4 is the mapping of exaone4.
var ggufExaone4 = GGUF{
	Architecture: "exaone4",
	Limits:       GGUFLimits{Square: true},
	Config: map[string]any{
		"model_type": "exaone4", "architectures": []string{"Exaone4ForCausalLM"}, "sliding_window": nil,
	},
	Refuse: func(m Model) string {
		if q, ok := m.(*Exaone4); ok && q.Window > 0 && q.Layers != 64 {
			return "has windows in a model of 64 layers only"
		}
		return ""
	},
	Keys: ggufKeys(GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufNames(GGUFOp{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight",
		"post_attention_norm.weight", "post_attention_layernorm.weight",
		"post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		ggufSliding(c, "exaone4", f)
		return ggufFactorsRope(c, f)
	},
}

// The mappings of decoders like llama.
var (
	ggufErnie45 = ernie45()
	ggufSeedOss = seedOss()
	ggufHunYuan = hunYuan("hunyuan-dense", "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM")
	ggufArcee   = arcee()
)

// ernie45 reads the bias of attention's output, too.
func ernie45() GGUF {
	g := withBias(ggufPlain("ernie4_5", "ernie4_5", "Ernie4_5ForCausalLM"), "use_bias")
	g.Limits.Biases = biasesOfAttention
	return g
}

// withBias adds a key that says whether layers have biases.
func withBias(g GGUF, key string) GGUF {
	before := g.Adjust
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		_, c[key] = f.Shape("blk.0.attn_q.bias")
		return before(c, f)
	}
	return g
}

// seedOss has the norm before the MLP under the name of one after attention.
func seedOss() GGUF {
	g := ggufPlain("seed_oss", "seed_oss", "SeedOssForCausalLM")
	g.Tensors = slices.Concat(ggufNames(GGUFOp{}, "post_attention_norm.weight", "post_attention_layernorm.weight"),
		g.Tensors)
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		_, c["attention_out_bias"] = f.Shape("blk.0.attn_output.bias")
		return ggufBiases(c, f)
	}
	return g
}

// hunYuan has the scaled theta of its rope.
func hunYuan(architecture, modelType, class string, more ...GGUFKey) GGUF {
	g := ggufPlain(architecture, modelType, class, more...)
	g.Tensors = append(slices.Clone(g.Tensors), ggufNames(GGUFOp{},
		"attn_q_norm.weight", "self_attn.query_layernorm.weight", "attn_k_norm.weight", "self_attn.key_layernorm.weight")...)
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		delete(c, "rope_scaling") // of factor 1
		return ggufBiases(c, f)
	}
	return g
}

// arcee has the changes of llama.
func arcee() GGUF {
	g := ggufPlain("arcee", "arcee", "ArceeForCausalLM")
	g.Tensors = slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufMLP, ggufPreNorms)
	g.Adjust = func(c map[string]any, f GGUFFile) error {
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufFactorsRope(c, f)
	}
	return g
}

// ggufMistral3 is the mapping of ministral3 and of mistral3's text model, with the changes of llama.
var ggufMistral3 = GGUF{
	Architecture: "mistral3",
	Limits:       GGUFLimits{Biases: allBiases, Betas: true},
	LogScale:     1,
	Also: func(m Model) []GGUFPair {
		if q, ok := m.(*Ministral3); ok && q.GrowthBeta > 0 {
			return []GGUFPair{{"attention.temperature_scale", float32(q.GrowthBeta)}}
		}
		return nil
	},
	Config:  map[string]any{"model_type": "ministral3", "architectures": []string{"Ministral3ForCausalLM"}},
	Keys:    ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufMLP, ggufPreNorms),
	Adjust: func(c map[string]any, f GGUFFile) error {
		scaling, ok := c["rope_scaling"].(map[string]any)
		if !ok {
			c["rope_scaling"] = map[string]any{"rope_type": "default"}
			return nil
		}
		if v, ok := f.Value("mistral3.rope.scaling.yarn_log_multiplier"); ok {
			scaling["mscale"], scaling["mscale_all_dim"] = v, v
		}
		if v, ok := f.Value("mistral3.attention.temperature_scale"); ok {
			scaling["llama_4_scaling_beta"] = v
		}
		return nil
	},
}
