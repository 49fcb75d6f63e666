package gguf

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// Latent are the tensors of layers with latent attention and an MLP.
func Latent() []Tensor {
	return slices.Concat(MLP, PreNorms,
		Names(Op{},
			"attn_q.weight", "self_attn.q_proj.weight", "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight",
			"attn_q_b.weight", "self_attn.q_b_proj.weight", "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight",
			"attn_kv_b.weight", "self_attn.kv_b_proj.weight",
			"attn_k_b.weight", "self_attn.embed_q.weight", "attn_v_b.weight", "self_attn.unembed_out.weight"),
		Linears(Op{}, "attn_q_a", "self_attn.q_a_proj", "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa",
			"attn_output", "self_attn.o_proj"))
}

// SetLatent sets the sizes of latent attention, its yarn, and the number of layers.
func SetLatent(c map[string]any, architecture string, f File) error {
	v, _ := f.Value(architecture + ".attention.key_length_mla")
	n, _ := v.(json.Number)
	key, err := n.Int64()
	rope, errRope := Number(c, "qk_rope_head_dim")
	if err != nil || errRope != nil || key <= rope {
		return fmt.Errorf("%w: %s.attention.key_length_mla = %v: want more than rope.dimension_count; convert it again "+
			"with a current llama.cpp", ErrMetadata, architecture, Shown(v))
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
				return fmt.Errorf("%w: %s.rope.scaling.yarn_log_multiplier = %v, want a number", ErrMetadata,
					architecture, Shown(v))
			}
			scaling["mscale_all_dim"] = float32(all * 10) // see LogScale
			scaling["mscale"] = scaling["mscale_all_dim"]
		}
	}
	return DropNext(c, architecture, f)
}

func AlsoLatent(m Model) []Pair {
	l, _ := Field[config.Latent](m, "Latent")
	pairs := []Pair{
		// llama.cpp computes in the latent: one key head of its width and the rotated channels.
		{"attention.head_count_kv", 1}, {"attention.key_length", l.KVRank + l.RopeDim},
		{"attention.value_length", l.KVRank}, {"attention.key_length_mla", l.NopeDim + l.RopeDim},
	}
	if x, _ := Field[config.Mixture](m, "Mixture"); x.Experts.Count == 0 { // required, with no layer that has experts
		width, _ := Field[int](m, "Intermediate")
		pairs = append(pairs, Pair{"leading_dense_block_count", config.CommonOf(m).Layers},
			Pair{"expert_feed_forward_length", width}, Pair{"expert_shared_count", 0})
	}
	return pairs
}

func RefuseLatent(m Model) string {
	l, _ := Field[config.Latent](m, "Latent")
	lite := []int{26, 27} // layers
	switch {
	case !l.Interleaved:
		return "rotates neighbouring channels, and the model the halves of a head"
	case l.QueryRank == 0 && !slices.Contains(lite, config.CommonOf(m).Layers):
		return fmt.Sprintf("has a single query projection in models of %d and %d layers only", lite[0], lite[1])
	}
	return ""
}

// SplitLatent makes k_b, with the two dimensions of a head exchanged, and v_b of kv_b.
func SplitLatent(m Model, name string) []Piece {
	l, ok := Field[config.Latent](m, "Latent")
	before, both := strings.CutSuffix(name, ".attn_kv_b.weight")
	if !ok || !both {
		return nil
	}
	heads, nope, value, rank := int64(config.CommonOf(m).Heads), int64(l.NopeDim), int64(l.ValueDim), int64(l.KVRank)
	return []Piece{
		{before + ".attn_k_b.weight", []int64{heads, rank, nope}, func(i int64) int64 {
			head, r, n := i/(rank*nope), i/nope%rank, i%nope
			return (head*(nope+value)+n)*rank + r
		}},
		{before + ".attn_v_b.weight", []int64{heads, value, rank}, func(i int64) int64 {
			return i + (i/(value*rank)+1)*nope*rank
		}},
	}
}
