package gguf

import (
	"math"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// Keys are the keys that every decoder has.
func Keys(more ...Key) []Key {
	return append([]Key{
		{Key: "block_count", To: "num_hidden_layers", Field: "Layers"},
		{Key: "context_length", To: "max_position_embeddings", Field: "Context"},
		{Key: "embedding_length", To: "hidden_size", Field: "Hidden"},
		{Key: "feed_forward_length", To: "intermediate_size", Field: "Intermediate", Optional: true},
		{Key: "attention.head_count", To: "num_attention_heads", Field: "Heads"},
		{Key: "attention.head_count_kv", To: "num_key_value_heads", Field: "KVHeads", Optional: true},
		{Key: "attention.key_length", To: "head_dim", Field: "HeadDim", Optional: true},
		{Key: "attention.layer_norm_rms_epsilon", To: "rms_norm_eps", Field: "NormEps"},
		{Key: "rope.freq_base", To: "rope_theta", Field: "Rope.Theta", Optional: true},
	}, more...)
}

// ExpertKeys are the keys of models with experts.
var ExpertKeys = []Key{
	{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
	{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
}

// Names makes the entries of pairs of names: in the file and in a checkpoint, both without the prefix of a layer.
func Names(op Op, pairs ...string) []Tensor {
	var list []Tensor
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, Tensor{Name: "blk.*." + pairs[i], To: "model.layers.*." + pairs[i+1], Op: op})
	}
	return list
}

// Linears makes the entries of weights and biases.
func Linears(op Op, pairs ...string) []Tensor {
	var list []Tensor
	for i := 0; i+1 < len(pairs); i += 2 {
		for _, end := range []string{".weight", ".bias"} {
			list = append(list, Names(op, pairs[i]+end, pairs[i+1]+end)...)
		}
	}
	return list
}

// Ends are the tensors outside of layers. norm is for the weight of the last norm.
func Ends(norm Op) []Tensor {
	return []Tensor{
		{Name: Embedding, To: "model.embed_tokens.weight"},
		{Name: "output_norm.weight", To: "model.norm.weight", Op: norm},
		{Name: Head, To: "lm_head.weight"},
		{Name: Factors, Why: "the frequencies that it makes are in config.json"},
		{Name: "blk.*.attn_rot_embd.weight", Why: table.InvFreq},
	}
}

// Values are attention's values and output, and MLP a gated feed-forward block.
var (
	Values = Linears(Op{}, "attn_v", "self_attn.v_proj", "attn_output", "self_attn.o_proj")
	QK     = Linears(Op{}, "attn_q", "self_attn.q_proj", "attn_k", "self_attn.k_proj")
	MLP    = Linears(Op{}, "ffn_gate", "mlp.gate_proj", "ffn_up", "mlp.up_proj", "ffn_down", "mlp.down_proj")
	// MoE is a router and its experts.
	MoE = append(Names(Op{}, "ffn_gate_inp.weight", "mlp.gate.weight"),
		Stacked("mlp.experts", "mlp.switch_mlp")...)
)

// Stacked are the experts of a layer: gate and up in one tensor or in two. base and switched are the names of the two
// layouts in checkpoints, as in a table.
func Stacked(base, switched string) []Tensor {
	const fused = "ffn_gate_up_exps.weight"
	down := Names(Op{}, "ffn_down_exps.weight", base+".down_proj")
	down[0].Beside = "blk.*." + fused
	return append(down, Names(Op{}, fused, base+".gate_up_proj",
		"ffn_gate_exps.weight", switched+".gate_proj.weight", "ffn_up_exps.weight", switched+".up_proj.weight",
		"ffn_down_exps.weight", switched+".down_proj.weight")...)
}

// PlusOne undoes the 1 that the converter adds to the weights of Gemma's and Qwen's norms.
var PlusOne = Op{
	What: "1 subtracted", Each: func(x float32) float32 { return x - 1 }, Back: func(x float32) float32 { return x + 1 },
}

// Under replaces the prefix of layers in the names of a checkpoint.
func Under(prefix string, list []Tensor) []Tensor {
	const usual = "model.layers.*."
	for i := range list {
		list[i].To = prefix + list[i].To[len(usual):]
	}
	return list
}

// Attention are attention's tensors without norms.
var Attention = slices.Concat(QK, Values)

// FeedForward are a gated block and experts that are called feed_forward.
var FeedForward = slices.Concat(
	Linears(Op{}, "ffn_gate", "feed_forward.gate_proj", "ffn_up", "feed_forward.up_proj",
		"ffn_down", "feed_forward.down_proj"),
	Names(Op{}, "ffn_gate_inp.weight", "feed_forward.gate.weight",
		"exp_probs_b.bias", "feed_forward.gate.e_score_correction_bias"),
	Stacked("feed_forward.experts", "feed_forward.switch_mlp"))

// LayerNorms are the LayerNorms of a pre-norm decoder, op for their weights.
func LayerNorms(op Op) []Tensor {
	biases := append(Names(Op{}, "attn_norm.bias", "input_layernorm.bias",
		"ffn_norm.bias", "post_attention_layernorm.bias"), Tensor{Name: "output_norm.bias", To: "model.norm.bias"})
	return append(biases, Names(op, "attn_norm.weight", "input_layernorm.weight",
		"ffn_norm.weight", "post_attention_layernorm.weight")...)
}

// PlainMLP is a feed-forward block without a gate.
func PlainMLP(up, down string) []Tensor {
	return Linears(Op{}, "ffn_up", up, "ffn_down", down)
}

// EpsKeys are the keys of a decoder with LayerNorms, whose epsilon has the given key.
func EpsKeys(to string) []Key {
	keys := Keys()
	for i, k := range keys {
		if k.To == "rms_norm_eps" {
			keys[i] = Key{Key: "attention.layer_norm_epsilon", To: to, Field: "NormEps"}
		}
	}
	return keys
}

// Clip is the limit of queries, keys and values.
var Clip = Key{Key: "attention.clamp_kqv", To: "clip_qkv", Field: "Clip", Optional: true}

// Weights returns the entries of weights.
func Weights(list []Tensor) []Tensor {
	return slices.DeleteFunc(slices.Clone(list), func(t Tensor) bool { return !strings.HasSuffix(t.Name, ".weight") })
}

// PairedQK are queries and keys whose rows are in the order of pairs.
var PairedQK = slices.Concat(
	Linears(PairedRows(func(c config.Common) int { return c.Heads }), "attn_q", "self_attn.q_proj"),
	Linears(PairedRows(func(c config.Common) int { return c.KVHeads }), "attn_k", "self_attn.k_proj"))

// PreNorms are the norms before attention and before the feed-forward block.
var PreNorms = Names(Op{},
	"attn_norm.weight", "input_layernorm.weight", "ffn_norm.weight", "post_attention_layernorm.weight")

// PairedRows undoes the order of the rows of queries and keys, in which the two channels of a rotated pair are
// neighbours.
func PairedRows(heads func(config.Common) int) Op {
	return Op{What: "the rows of each head in halves", Rows: func(m Model, rows int64) []int64 {
		d, ok := m.(interface{ Base() config.Common })
		if !ok {
			return nil
		}
		dim := rows / int64(heads(d.Base()))
		order := make([]int64, rows)
		for i := range order {
			head, at := int64(i)/max(dim, 1), int64(i)%max(dim, 1)
			half := dim / 2
			order[i] = head*dim + at%max(half, 1)*2 + at/max(half, 1)
		}
		return order
	}}
}

// CountKeys is the number of experts.
func CountKeys(to string, more ...Key) []Key {
	return Keys(append([]Key{
		{Key: "expert_count", To: to, Field: "Experts.Count"},
		{Key: "expert_used_count", To: "num_experts_per_tok", Field: "Experts.PerToken"},
	}, more...)...)
}

// GroupedKeys are the keys of DeepSeek's router, which some other models have.
func GroupedKeys(count, shared string) []Key {
	return CountKeys(count,
		Key{Key: "expert_feed_forward_length", To: "moe_intermediate_size", Field: "Experts.Intermediate"},
		Key{Key: "expert_shared_count", To: shared, Optional: true},
		Key{Key: "expert_group_count", To: "n_group", Field: "Router.Groups", Optional: true},
		Key{Key: "expert_group_used_count", To: "topk_group", Field: "Router.TopGroups", Optional: true},
		Key{Key: "expert_weights_scale", To: "routed_scaling_factor", Field: "Router.Scaling", Optional: true},
		Key{Key: "expert_weights_norm", To: "norm_topk_prob", Field: "Experts.NormTopK", Optional: true},
		Key{Key: "leading_dense_block_count", To: "first_k_dense_replace", Optional: true},
	)
}

// SharedExperts are the shared experts, and the correction of a router.
var SharedExperts = append(Names(Op{}, "exp_probs_b.bias", "mlp.gate.e_score_correction_bias"),
	Linears(Op{}, "ffn_gate_shexp", "mlp.shared_experts.gate_proj",
		"ffn_up_shexp", "mlp.shared_experts.up_proj", "ffn_down_shexp", "mlp.shared_experts.down_proj")...)

// HeadNorms are norms of queries and keys.
var HeadNorms = Names(Op{},
	"attn_q_norm.weight", "self_attn.q_norm.weight", "attn_k_norm.weight", "self_attn.k_norm.weight")

// Plain is the mapping of a decoder with the names and norms of llama, whose elements are as in a checkpoint.
func Plain(architecture, modelType, class string, more ...Key) Map {
	return Map{
		Architecture: architecture,
		Config:       map[string]any{"model_type": modelType, "architectures": []string{class}},
		Keys:         Keys(more...),
		Tensors:      slices.Concat(Ends(Op{}), QK, Values, MLP, PreNorms),
		Adjust:       SetBiases,
	}
}

var LogitScale = Key{Key: "logit_scale", To: "logit_scale", Field: "LogitScale"}

// LogOf adds the inverse of -exp(x).
func LogOf(op Op) Op {
	if op.What != "" {
		op.What += ", "
	}
	op.What += "the logarithm of its negative"
	op.Each = func(x float32) float32 { return float32(math.Log(-float64(x))) }
	op.Back = func(x float32) float32 { return float32(-math.Exp(float64(x))) }
	return op
}
