package arch

import (
	"encoding/json"
	"slices"
)

// ggufLlama is the mapping of llama. Mistral's models have the same architecture there, without their window, and with
// experts they are Mixtral's.
var ggufLlama = GGUF{
	Architecture: "llama",
	Limits:       GGUFLimits{Biases: allBiases},
	Config:       map[string]any{"model_type": "llama", "architectures": []string{"LlamaForCausalLM"}},
	Keys: ggufKeys(
		GGUFKey{Key: "expert_count", To: "num_local_experts", Field: "Experts.Count", Optional: true},
		GGUFKey{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken", Optional: true}),
	Tensors: slices.Concat(ggufEnds(GGUFOp{}), ggufValues, ggufMLP, ggufPreNorms, ggufPairs, ggufMoE),
	Adjust:  adjustLlama,
}

// ggufPairs are queries and keys whose rows are in the order of pairs.
var ggufPairs = slices.Concat(
	ggufLinears(pairsOf(func(c Common) int { return c.Heads }), "attn_q", "self_attn.q_proj"),
	ggufLinears(pairsOf(func(c Common) int { return c.KVHeads }), "attn_k", "self_attn.k_proj"))

// ggufPreNorms are the norms before attention and before the feed-forward block.
var ggufPreNorms = ggufNames(GGUFOp{},
	"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight")

func adjustLlama(c map[string]any, f GGUFFile) error {
	switch v, ok := f.Value("llama.expert_count"); {
	case ok && v != json.Number("0"):
		c["model_type"], c["architectures"] = "mixtral", []string{"MixtralForCausalLM"}
	default:
		delete(c, "num_local_experts")
		delete(c, "num_experts_per_tok")
	}
	if dim, ok := f.Value("llama.rope.dimension_count"); ok {
		if _, ok := c["head_dim"]; !ok {
			c["head_dim"] = dim
		}
	}
	_, c["attention_bias"] = f.Shape("blk.0.attn_q.bias")
	_, c["mlp_bias"] = f.Shape("blk.0.ffn_gate.bias")
	return ggufFactorsRope(c, f)
}

// pairsOf undoes the order of the rows of queries and keys, in which the two channels of a rotated pair are neighbours.
func pairsOf(heads func(Common) int) GGUFOp {
	return GGUFOp{What: "the rows of each head in halves", Rows: func(m Model, rows int64) []int64 {
		d, ok := m.(interface{ common() Common })
		if !ok {
			return nil
		}
		dim := rows / int64(heads(d.common()))
		order := make([]int64, rows)
		for i := range order {
			head, at := int64(i)/max(dim, 1), int64(i)%max(dim, 1)
			half := dim / 2
			order[i] = head*dim + at%max(half, 1)*2 + at/max(half, 1)
		}
		return order
	}}
}
