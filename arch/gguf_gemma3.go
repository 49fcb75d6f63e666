package arch

import (
	"encoding/json"
	"slices"
)

// ggufGemma3 is the mapping of gemma3. Weights of norms have 1 added; files of 27B, with 62 layers, scale queries by
// the size of a layer's channels per head.
var ggufGemma3 = GGUF{
	Architecture: "gemma3",
	Config:       map[string]any{"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Field: "Window", Optional: true},
		GGUFKey{Key: "rope.freq_base_swa", To: "rope_local_base_freq", Field: "SlidingRope.Theta", Optional: true},
		GGUFKey{Key: "final_logit_softcapping", To: "final_logit_softcapping", Field: "LogitCap", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(plusOne), ggufQK, ggufValues, ggufMLP, ggufNames(plusOne,
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")),
	Adjust: adjustGemma3,
	Refuse: func(m Model) string {
		if q, ok := m.(*Gemma3); ok && q.SlidingRope.Type != "" && q.SlidingRope.Type != RopeDefault {
			return "does not scale the positions of sliding layers"
		}
		return ""
	},
}

func adjustGemma3(c map[string]any, f GGUFFile) error {
	if err := ggufQueryScalar(c, 62); err != nil {
		return err
	}
	if _, ok := c["sliding_window"]; !ok {
		c["sliding_window_pattern"] = 1 // every layer is a full one
	}
	ggufSliding(c, "gemma3", f)
	return nil
}

func number(c map[string]any, key string) (int64, error) {
	n, _ := c[key].(json.Number)
	return n.Int64()
}
