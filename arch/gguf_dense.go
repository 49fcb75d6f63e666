package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufQwen2 is the mapping of qwen2.
var ggufQwen2 = GGUF{
	Architecture: "qwen2",
	Limits:       GGUFLimits{Square: true},
	Config: map[string]any{
		"model_type": "qwen2", "architectures": []string{"Qwen2ForCausalLM"}, "use_sliding_window": false,
	},
	Keys:    ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms),
}

// ggufPhi3 is the mapping of phi3. The head size and the part of it that is rotated follow from other keys.
var ggufPhi3 = GGUF{
	Architecture: "phi3",
	Limits:       GGUFLimits{NoWindow: true, Square: true},
	Config:       map[string]any{"model_type": "phi3", "architectures": []string{"Phi3ForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "rope.scaling.original_context_length", To: "original_max_position_embeddings",
			Field: "Rope.OriginalMax", Optional: true},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPreNorms, ggufLinears(GGUFOp{},
		"attn_qkv", "self_attn.qkv_proj", "attn_output", "self_attn.o_proj",
		"ffn_up", "mlp.gate_up_proj", "ffn_down", "mlp.down_proj"),
		[]GGUFTensor{
			{Name: ggufShort, Why: "its factors are in config.json"},
			{Name: ggufLong, Why: "its factors are in config.json"},
		}),
	Adjust: adjustPhi3,
}

func adjustPhi3(c map[string]any, f GGUFFile) error {
	hidden, errHidden := number(c, "hidden_size")
	heads, errHeads := number(c, "num_attention_heads")
	v, _ := f.Value("phi3.rope.dimension_count")
	n, _ := v.(json.Number)
	rotated, err := n.Int64()
	if errHidden != nil || errHeads != nil || err != nil || heads < 1 || hidden < heads {
		return fmt.Errorf("%w: phi3.rope.dimension_count = %v: want a part of a head", ErrGGUF, shown(v))
	}
	c["partial_rotary_factor"] = float64(rotated) / float64(hidden/heads)
	c["sliding_window"] = nil
	if v, ok := f.Value("phi3.attention.sliding_window"); ok && v != json.Number("0") {
		c["sliding_window"] = v
	}
	if _, ok := f.Shape(ggufShort); !ok {
		return nil
	}
	// rope.scaling.attn_factor follows from the two contexts.
	return ggufLongRope(c, map[string]any{}, f)
}

// ggufGemma is the mapping of gemma. Weights of norms have 1 added; the head is the embedding.
var ggufGemma = GGUF{
	Architecture: "gemma",
	Limits:       GGUFLimits{Tied: true},
	Config:       map[string]any{"model_type": "gemma", "architectures": []string{"GemmaForCausalLM"}},
	Keys:         ggufKeys(),
	Tensors: slices.Concat(ggufEnds(plusOne), ggufQK, ggufValues, ggufMLP, ggufNames(plusOne,
		"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight")),
	Adjust: ggufBiases,
}

// ggufBiases sets which layers have biases.
func ggufBiases(c map[string]any, f GGUFFile) error {
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["mlp_bias"] = f.Shape("blk.0.ffn_up.bias")
	return nil
}

// ggufGemma2 is the mapping of gemma2. Files of 27B, with 46 layers, scale queries by the size of a layer's channels
// per head.
var ggufGemma2 = GGUF{
	Architecture: "gemma2",
	Limits:       GGUFLimits{Tied: true},
	Config:       map[string]any{"model_type": "gemma2", "architectures": []string{"Gemma2ForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true},
		GGUFKey{Key: "attn_logit_softcapping", To: "attn_logit_softcapping", Field: "ScoreCap", Optional: true},
		GGUFKey{Key: "final_logit_softcapping", To: "final_logit_softcapping", Field: "LogitCap", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(plusOne), ggufQK, ggufValues, ggufMLP, ggufNames(plusOne,
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufQueryScalar(c, 46)
	},
}

// ggufQueryScalar sets what Gemma's attention scores are scaled by: the size of a head or, in the model with so many
// layers, the size of a layer's channels per head.
func ggufQueryScalar(c map[string]any, large int) error {
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	if _, ok := c["head_dim"]; !ok {
		c["head_dim"] = 256
	}
	c["query_pre_attn_scalar"] = c["head_dim"]
	if layers == large {
		hidden, errHidden := number(c, "hidden_size")
		heads, errHeads := number(c, "num_attention_heads")
		if errHidden == nil && errHeads == nil && heads > 0 {
			c["query_pre_attn_scalar"] = hidden / heads
		}
	}
	return nil
}

// ggufGranite is the mapping of granite, which has the changes of llama.
var ggufGranite = GGUF{
	Architecture: "granite",
	Limits:       GGUFLimits{Biases: allBiases},
	Config:       map[string]any{"model_type": "granite", "architectures": []string{"GraniteForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.scale", To: "attention_multiplier", Field: "AttentionScale", Optional: true},
		GGUFKey{Key: "embedding_scale", To: "embedding_multiplier", Field: "EmbeddingScale", Optional: true},
		GGUFKey{Key: "residual_scale", To: "residual_multiplier", Field: "ResidualScale", Optional: true},
		GGUFKey{Key: "logit_scale", To: "logits_scaling", Field: "LogitDivisor", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufMLP, ggufPreNorms),
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		return ggufFactorsRope(c, f)
	},
}

// ggufSmolLM3 is the mapping of smollm3, which has the changes of llama. llama.cpp takes the rope from every fourth
// layer, whatever a file says.
var ggufSmolLM3 = GGUF{
	Architecture: "smollm3",
	Config: map[string]any{
		"model_type": "smollm3", "architectures": []string{"SmolLM3ForCausalLM"}, "no_rope_layer_interval": 4,
	},
	Keys:    ggufKeys(),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufPairs, ggufValues, ggufMLP, ggufPreNorms),
	Adjust:  ggufBiases,
}

// ggufOlmo2 is the mapping of olmo2, and of olmo3, whose files have a window.
var ggufOlmo2 = GGUF{
	Architecture: "olmo2",
	Limits:       GGUFLimits{Square: true, OwnHead: true},
	Config:       map[string]any{"model_type": "olmo2", "architectures": []string{"Olmo2ForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufNames(GGUFOp{},
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight",
		"post_attention_norm.weight", "post_attention_layernorm.weight",
		"post_ffw_norm.weight", "post_feedforward_layernorm.weight")),
	Also: func(m Model) []GGUFPair {
		if q, ok := m.(*Olmo3); ok && q.Window > 0 {
			return []GGUFPair{{"rope.freq_base_swa", float32(q.SlidingRope.Theta)}}
		}
		return nil
	},
	Adjust: func(c map[string]any, f GGUFFile) error {
		if err := ggufBiases(c, f); err != nil {
			return err
		}
		window, ok := f.Value("olmo2.attention.sliding_window")
		if !ok {
			return nil
		}
		c["model_type"], c["architectures"], c["sliding_window"] = "olmo3", []string{"Olmo3ForCausalLM"}, window
		ggufSliding(c, "olmo2", f)
		return nil
	},
}

// ggufSliding sets which layers slide, if a file says so: a list of the layers, or one of how many is a full one.
func ggufSliding(c map[string]any, architecture string, f GGUFFile) {
	v, ok := f.Value(architecture + ".attention.sliding_window_pattern")
	if !ok {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c["sliding_window_pattern"] = v
		return
	}
	kinds := make([]string, len(list))
	for i, sliding := range list {
		if kinds[i] = fullAttention; sliding == true {
			kinds[i] = slidingAttention
		}
	}
	c["layer_types"] = kinds
}
