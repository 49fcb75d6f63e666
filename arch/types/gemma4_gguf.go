package types

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/gguf"
)

// ggufGemma4 is the mapping of gemma4. Keys of attention are those of full layers; keys that end in _swa are those of
// sliding ones. Factors of the frequencies tell which channels of full layers are rotated.
var ggufGemma4 = gguf.Map{
	Architecture: "gemma4",
	Limits:       gguf.Limits{Biases: gguf.NoBiases},
	Config: map[string]any{
		"model_type": "gemma4_text", "architectures": []string{"Gemma4ForCausalLM"}, "num_kv_shared_layers": 0,
		"hidden_size_per_layer_input": 0,
	},
	Keys: []gguf.Key{
		{Key: "block_count", To: "num_hidden_layers", Field: "Layers"},
		{Key: "context_length", To: "max_position_embeddings", Field: "Context"},
		{Key: "embedding_length", To: "hidden_size", Field: "Hidden"},
		{Key: "feed_forward_length", To: "intermediate_size"},
		{Key: "attention.head_count", To: "num_attention_heads", Field: "Heads"},
		{Key: "attention.head_count_kv", To: "num_key_value_heads"},
		{Key: "attention.key_length", To: "global_head_dim"},
		{Key: "attention.key_length_swa", To: "head_dim"},
		{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps", Field: "NormEps"},
		{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"},
		{Key: "attention.shared_kv_layers", To: "num_kv_shared_layers", Optional: true},
		{Key: "embedding_length_per_layer_input", To: "hidden_size_per_layer_input", Optional: true},
		{Key: "expert_count", To: "num_experts", Field: "Experts.Count", Optional: true},
		{Key: "expert_used_count", To: "top_k_experts", Field: "Experts.PerToken", Optional: true},
		{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate", Optional: true},
		{Key: "final_logit_softcapping", To: "final_logit_softcapping", Field: "LogitCap", Optional: true},
	},
	Tensors: slices.Concat(gguf.Ends(gguf.Op{}), gguf.QK, gguf.Values, gguf.MLP, gguf.Names(gguf.Op{},
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight",
		"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight",
		"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight",
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight",
		"ffn_gate_inp.weight", "router.proj.weight", "ffn_gate_inp.scale", "router.scale",
		"ffn_down_exps.scale", "router.per_expert_scale",
		"layer_output_scale.weight", "layer_scalar", "inp_gate.weight", "per_layer_input_gate.weight",
		"proj.weight", "per_layer_projection.weight", "post_norm.weight", "post_per_layer_input_norm.weight",
	), gguf.Stacked("experts", "experts.switch_glu"), []gguf.Tensor{
		{Name: "per_layer_token_embd.weight", To: "model.embed_tokens_per_layer.weight"},
		{Name: "per_layer_model_proj.weight", To: "model.per_layer_model_projection.weight"},
		{Name: "per_layer_proj_norm.weight", To: "model.per_layer_projection_norm.weight"},
	}),
	Adjust: adjustGemma4,
	Also:   alsoGemma4,
	Refuse: refuseGemma4,
	HeadDim: func(m gguf.Model) int {
		if q, ok := m.(*Gemma4); ok {
			return q.full().HeadDim
		}
		return 0
	},
}

func alsoGemma4(m gguf.Model) []gguf.Pair {
	q, ok := m.(*Gemma4)
	if !ok {
		return nil
	}
	sliding, widths, heads, shared := make([]bool, q.Layers), make([]int, q.Layers), make([]int, q.Layers), 0
	for i, l := range q.Layer {
		sliding[i], widths[i], heads[i] = l.Sliding, l.Intermediate, l.KVHeads
		if q.Shared(i) {
			shared++
		}
	}
	full := q.full().HeadDim
	return []gguf.Pair{
		{Key: "feed_forward_length", Value: widths}, {Key: "attention.head_count_kv", Value: heads},
		{Key: "attention.key_length", Value: full}, {Key: "attention.value_length", Value: full},
		{Key: "rope.dimension_count", Value: full},
		{Key: "attention.key_length_swa", Value: q.HeadDim}, {Key: "attention.value_length_swa", Value: q.HeadDim},
		{Key: "rope.dimension_count_swa", Value: q.HeadDim}, {Key: "attention.sliding_window_pattern", Value: sliding},
		{Key: "attention.shared_kv_layers", Value: shared},
		{Key: "embedding_length_per_layer_input", Value: q.PerLayerHidden},
		{Key: "rope.freq_base", Value: float32(q.Rope.Theta)},
		{Key: "rope.freq_base_swa", Value: float32(q.SlidingRope.Theta)},
	}
}

func refuseGemma4(m gguf.Model) string {
	q, ok := m.(*Gemma4)
	switch {
	case ok && q.Rope.Type == config.RopeProportional && q.Rope.Factor != 1, ok &&
		q.SlidingRope.Type != config.RopeDefault:
		return "does not scale positions"
	}
	return ""
}

func adjustGemma4(c map[string]any, f gguf.File) error {
	layers, err := gguf.Layers(c)
	if err != nil {
		return err
	}
	sliding, err := flags(f, "gemma4.attention.sliding_window_pattern", layers)
	if err != nil {
		return err
	}
	kinds, full := make([]string, layers), -1
	for i := range kinds {
		if kinds[i] = config.SlidingAttention; !sliding[i] {
			if kinds[i] = config.FullAttention; full < 0 { // the last ones may share the keys and values of another layer
				full = i
			}
		}
	}
	c["layer_types"] = kinds
	if list, ok := c["num_key_value_heads"].([]any); ok && len(list) == layers {
		for i, heads := range list {
			if sliding[i] {
				c["num_key_value_heads"] = heads
			} else {
				c["num_global_key_value_heads"] = heads
			}
		}
	}
	if list, ok := c["intermediate_size"].([]any); ok && len(list) == layers {
		c["intermediate_size"], c["use_double_wide_mlp"] = list[0], list[0] != list[layers-1]
	}
	if full >= 0 {
		_, values := f.Shape(fmt.Sprintf("blk.%d.attn_v.weight", full))
		c["attention_k_eq_v"] = !values
	}
	if shape, ok := f.Shape("per_layer_token_embd.weight"); ok && len(shape) == 2 {
		c["vocab_size_per_layer_input"] = shape[0]
	}
	n, _ := c["num_experts"].(json.Number)
	c["enable_moe_block"] = n != "" && n != "0"
	return gemma4Rope(c, f)
}

// flags returns a list of bools, one for each layer.
func flags(f gguf.File, key string, layers int) ([]bool, error) {
	v, _ := f.Value(key)
	list, _ := v.([]any)
	out := make([]bool, layers)
	if len(list) != layers {
		return nil, fmt.Errorf("%w: %s: want %d bools", gguf.ErrMetadata, key, layers)
	}
	for i, v := range list {
		out[i] = v == true
	}
	return out, nil
}

// gemma4Rope sets the parameters of both kinds of layers. A factor of 1 marks a rotated pair of a full layer.
func gemma4Rope(c map[string]any, f gguf.File) error {
	full := map[string]any{"rope_type": string(config.RopeProportional)}
	if theta, ok := f.Value("gemma4.rope.freq_base"); ok {
		full["rope_theta"] = theta
	}
	if _, ok := f.Shape(gguf.Factors); ok {
		factors, err := f.Floats(gguf.Factors)
		if err != nil {
			return err
		}
		rotated := 0
		for rotated < len(factors) && factors[rotated] == 1 {
			rotated++
		}
		if rotated == 0 {
			return fmt.Errorf("%w: %s rotates nothing", gguf.ErrMetadata, gguf.Factors)
		}
		full["partial_rotary_factor"] = float64(rotated) / float64(len(factors))
	}
	sliding := map[string]any{"rope_type": string(config.RopeDefault)}
	if theta, ok := f.Value("gemma4.rope.freq_base_swa"); ok {
		sliding["rope_theta"] = theta
	}
	delete(c, "rope_scaling")
	c["rope_parameters"] = map[string]any{config.FullAttention: full, config.SlidingAttention: sliding}
	return nil
}
