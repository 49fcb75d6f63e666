package arch

import (
	"encoding/json"
	"fmt"
	"slices"
)

// ggufGemma3 is the mapping of gemma3. Weights of norms have 1 added; files of 27B, with 62 layers, scale queries by
// the size of a layer's channels per head.
var ggufGemma3 = GGUF{
	Architecture: "gemma3",
	Config:       map[string]any{"model_type": "gemma3_text", "architectures": []string{"Gemma3ForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "attention.sliding_window", To: "sliding_window", Optional: true},
		GGUFKey{Key: "rope.freq_base_swa", To: "rope_local_base_freq", Optional: true},
		GGUFKey{Key: "final_logit_softcapping", To: "final_logit_softcapping", Optional: true},
	),
	Tensors: slices.Concat(ggufEnds(plusOne), ggufQK, ggufValues, ggufMLP, ggufNames(plusOne,
		"attn_norm.weight", "input_layernorm.weight", "post_attention_norm.weight", "post_attention_layernorm.weight",
		"ffn_norm.weight", "pre_feedforward_layernorm.weight", "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
		"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")),
	Adjust: adjustGemma3,
	write:  writeGemma3,
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

func writeGemma3(m Model) (ggufDecoder, bool) {
	q, ok := m.(*Gemma3)
	if !ok {
		return ggufDecoder{}, false
	}
	d := ggufDecoder{Common: q.Common, intermediate: q.Intermediate, rope: q.Rope}
	scalar := float64(q.HeadDim)
	if q.Layers == 62 {
		scalar = float64(q.Hidden / q.Heads)
	}
	switch r := q.SlidingRope; {
	case q.QueryScalar != scalar:
		d.refused = fmt.Sprintf("llama.cpp divides the scores of this gemma3 by the square root of %v, and the model by "+
			"that of %v", scalar, q.QueryScalar)
	case r.Type != "" && r.Type != RopeDefault:
		d.refused = "llama.cpp does not scale the positions of gemma3's sliding layers"
	}
	if slices.Contains(q.Sliding, true) {
		d.more = []GGUFPair{
			{"attention.sliding_window", q.Window}, {"attention.sliding_window_pattern", q.Sliding},
			{"rope.freq_base_swa", float32(q.SlidingRope.Theta)},
		}
	}
	if q.LogitCap > 0 {
		d.more = append(d.more, GGUFPair{"final_logit_softcapping", float32(q.LogitCap)})
	}
	return d, true
}

func number(c map[string]any, key string) (int64, error) {
	n, _ := c[key].(json.Number)
	return n.Int64()
}
