package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufLaguna is the mapping of laguna. Keys that end in _swa are those of sliding layers. A file without a pattern has
// a full layer before every three sliding ones.
var ggufLaguna = GGUF{
	Architecture: "laguna",
	Limits:       GGUFLimits{Betas: true},
	Config:       map[string]any{"model_type": "laguna", "architectures": []string{"LagunaForCausalLM"}},
	Keys: append(slices.DeleteFunc(ggufGrouped("num_experts", ""), func(k GGUFKey) bool {
		return k.To == "" || k.To == "n_group" || k.To == "topk_group" || k.To == "routed_scaling_factor"
	}),
		GGUFKey{
			Key: "expert_weights_scale", To: "moe_routed_scaling_factor", Field: "Router.Scaling", Optional: true,
		},
		GGUFKey{Key: "expert_shared_feed_forward_length", To: "shared_expert_intermediate_size", Field: "Shared"},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms, ggufMoE, ggufShared,
		ggufHeadNorms, ggufNames(GGUFOp{}, "attn_gate.weight", "self_attn.g_proj.weight")),
	Adjust: adjustLaguna,
	Also: func(m Model) []GGUFPair {
		q, ok := m.(*Laguna)
		if !ok {
			return nil
		}
		pairs := []GGUFPair{{"attention.head_count", q.LayerHeads}}
		if q.Window > 0 {
			pairs = append(pairs, alsoSliding(q.SlidingRope, q.HeadDim)...)
		}
		return pairs
	},
	Refuse: func(m Model) string {
		if q, ok := m.(*Laguna); ok && q.Window > 0 && q.SlidingRope.Type != RopeDefault {
			return "does not scale the positions of sliding layers"
		}
		return ""
	},
}

// alsoSliding are the keys of the rope of sliding layers.
func alsoSliding(r Rope, dim int) []GGUFPair {
	return []GGUFPair{
		{"rope.freq_base_swa", float32(r.Theta)},
		{"rope.dimension_count_swa", int(float64(dim) * r.PartialFactor)},
	}
}

func adjustLaguna(c map[string]any, f GGUFFile) error {
	const architecture = "laguna"
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	heads := c["num_attention_heads"]
	if list, ok := heads.([]any); ok {
		if len(list) != layers {
			return fmt.Errorf("%w: laguna.attention.head_count: want %d numbers", ErrGGUF, layers)
		}
		c["num_attention_heads_per_layer"], c["num_attention_heads"] = list, list[0]
	}
	gates := make([]string, layers)
	for i := range gates {
		rows, ok := f.Shape(fmt.Sprintf("blk.%d.attn_gate.weight", i))
		queries, okQ := f.Shape(fmt.Sprintf("blk.%d.attn_q.weight", i))
		if !ok || !okQ || len(rows) != 2 || len(queries) != 2 {
			return fmt.Errorf("%w: blk.%d.attn_gate.weight or attn_q.weight is missing", ErrGGUF, i)
		}
		if gates[i] = "per_head"; rows[0] == queries[0] {
			gates[i] = "per_element"
		}
	}
	c["gating_types"] = gates
	if v, ok := c["sliding_window"]; ok && v != json.Number("0") {
		kinds := make([]string, layers)
		for i := range kinds {
			if kinds[i] = slidingAttention; i%4 == 0 {
				kinds[i] = fullAttention
			}
		}
		c["layer_types"] = kinds
		ggufSliding(c, architecture, f)
	} else {
		c["layer_types"] = slices.Repeat([]string{fullAttention}, layers)
	}
	if err := ggufBiases(c, f); err != nil {
		return err
	}
	if err := ggufSparse(c, f); err != nil {
		return err
	}
	return ggufRopes(c, architecture, f)
}

// ggufRopes sets the ropes of full and of sliding layers, which have parts of a head and bases of their own.
func ggufRopes(c map[string]any, architecture string, f GGUFFile) error {
	if err := ggufPartial(c, architecture, f); err != nil {
		return err
	}
	full, ok := c["rope_scaling"].(map[string]any)
	if !ok {
		full = map[string]any{"rope_type": string(RopeDefault)}
	}
	full["rope_theta"], full["partial_rotary_factor"] = c["rope_theta"], c["partial_rotary_factor"]
	sliding := map[string]any{
		"rope_type": string(RopeDefault), "rope_theta": c["rope_theta"],
		"partial_rotary_factor": c["partial_rotary_factor"],
	}
	if theta, ok := f.Value(architecture + ".rope.freq_base_swa"); ok {
		sliding["rope_theta"] = theta
	}
	if v, ok := f.Value(architecture + ".rope.dimension_count_swa"); ok {
		n, _ := v.(json.Number)
		rotated, err := n.Int64()
		dim, errDim := number(c, "head_dim")
		if err != nil || errDim != nil || dim < 1 {
			return fmt.Errorf("%w: %s.rope.dimension_count_swa = %v: want a part of a head", ErrGGUF, architecture,
				shown(v))
		}
		sliding["partial_rotary_factor"] = float64(rotated) / float64(dim)
	}
	for _, key := range []string{"rope_scaling", "rope_theta", "partial_rotary_factor"} {
		delete(c, key)
	}
	c["rope_parameters"] = map[string]any{fullAttention: full, slidingAttention: sliding}
	return nil
}

// ggufMimo2 is the mapping of mimo_v2_flash. llama.cpp takes the weights of experts to sum to 1, and does not scale
// them.
var ggufMimo2 = GGUF{
	Architecture: "mimo2",
	Limits:       GGUFLimits{Biases: noBiases, OwnHead: true, AnySparse: true},
	Config: map[string]any{
		"model_type": "mimo_v2_flash", "architectures": []string{"MiMoV2FlashForCausalLM"}, "norm_topk_prob": true,
	},
	Keys: append(slices.DeleteFunc(ggufGrouped("n_routed_experts", ""), func(k GGUFKey) bool {
		return k.To == "" || k.To == "routed_scaling_factor" || k.To == "norm_topk_prob" || k.To == "first_k_dense_replace"
	}),
		GGUFKey{Key: "attention.value_length", To: "v_head_dim"},
		GGUFKey{Key: "attention.value_scale", To: "attention_value_scale", Optional: true},
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window"}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufQK, ggufValues, ggufMLP, ggufPreNorms, ggufMoE, ggufShared,
		ggufNames(GGUFOp{}, "attn_sinks.weight", "self_attn.sinks")),
	Next: []GGUFTensor{{
		Name: "blk.*" + anyTensor, Why: "a head for tokens after the next, which is not supported for mimo_v2_flash",
	}},
	Adjust: adjustMimo2,
	Also: func(m Model) []GGUFPair {
		q, ok := m.(*MiMoV2Flash)
		if !ok {
			return nil
		}
		heads := make([]int, q.Layers)
		for i := range heads {
			c, _ := q.Layer(i)
			heads[i] = c.KVHeads
		}
		sliding := q.Sliding
		if sliding == nil {
			sliding = make([]bool, q.Layers)
		}
		return []GGUFPair{
			{"attention.head_count_kv", heads}, {"attention.value_length", q.ValueDim},
			{"attention.value_scale", float32(q.ValueScale)}, {"attention.sliding_window_pattern", sliding},
			{"rope.freq_base_swa", float32(q.SlidingRope.Theta)},
		}
	},
	Refuse: func(m Model) string {
		q, ok := m.(*MiMoV2Flash)
		switch {
		case ok && q.Rope.PartialFactor != q.SlidingRope.PartialFactor:
			return "rotates the same part of a head in all layers"
		case ok && (q.Rope.Type != RopeDefault || q.SlidingRope.Type != RopeDefault):
			return "does not scale positions"
		}
		return ""
	},
}

func adjustMimo2(c map[string]any, f GGUFFile) error {
	const architecture = "mimo2"
	heads, _ := c["num_key_value_heads"].([]any)
	sliding, _ := f.Value(architecture + ".attention.sliding_window_pattern")
	pattern, _ := sliding.([]any)
	if err := dropNext(c, architecture, f); err != nil {
		return err
	}
	layers, err := ggufLayers(c)
	if err != nil {
		return err
	}
	if len(heads) < layers || len(pattern) < layers {
		return fmt.Errorf("%w: mimo2.attention.head_count_kv and sliding_window_pattern: want %d elements", ErrGGUF, layers)
	}
	kinds := make([]string, layers)
	for i := range kinds {
		_, sinks := f.Shape(fmt.Sprintf("blk.%d.attn_sinks.weight", i))
		if slides := pattern[i] == true || pattern[i] == json.Number("1"); slides {
			kinds[i] = slidingAttention
			c["swa_num_key_value_heads"], c["add_swa_attention_sink_bias"] = heads[i], sinks
		} else {
			kinds[i] = fullAttention
			c["num_key_value_heads"], c["add_full_attention_sink_bias"] = heads[i], sinks
		}
	}
	if _, ok := c["num_key_value_heads"].([]any); ok { // all layers slide
		c["num_key_value_heads"] = heads[0]
	}
	c["layer_types"] = kinds
	if _, ok := c["attention_value_scale"]; !ok {
		c["attention_value_scale"] = nil // 1
	}
	c["layernorm_epsilon"] = c["rms_norm_eps"]
	if err := ggufBiases(c, f); err != nil {
		return err
	}
	if err := ggufSparse(c, f); err != nil {
		return err
	}
	return ggufRopes(c, architecture, f)
}
