package arch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch/config"
)

// fixedKey is a key of published configurations whose value the reference takes for granted: its code does not read it,
// and computes what these values say. Other values are refused.
type fixedKey struct {
	types  []string // model types, or other names of them
	key    string
	values []string // as JSON
}

var fixed = []fixedKey{
	{[]string{"glm_moe_dsa", "deepseek_v32"}, "moe_layer_freq", []string{"1"}},
	{[]string{"glm_moe_dsa"}, "indexer_rope_interleave", []string{"true"}},
	{[]string{"glm_moe_dsa", "deepseek_v4"}, "rope_interleave", []string{"true"}},
	{[]string{"minimax_m2"}, "qk_norm_type", []string{`"per_layer"`}},
	{[]string{"minimax_m2"}, "shared_intermediate_size", []string{"0"}},
	{[]string{"qwen3_moe"}, "shared_expert_intermediate_size", []string{"0"}},
	{[]string{"qwen3_vl_moe", "qwen3_vl_moe_text"}, "norm_topk_prob", []string{"true"}},
	{[]string{"qwen3_5", "qwen3_5_moe"}, "output_gate_type", []string{`"silu"`, `"swish"`}},
	{[]string{"laguna"}, "decoder_sparse_step", []string{"1"}},
	{[]string{"starcoder2"}, "mlp_type", []string{`"default"`}},
	{[]string{"starcoder2"}, "norm_type", []string{`"layer_norm"`}},
	{[]string{"starcoder2", "gptj", "qwen"}, "scale_attn_weights", []string{"true"}},
	{[]string{"phi3"}, "full_attn_mod", []string{"1"}},
	{[]string{"phi3"}, "interpolate_factor", []string{"1"}},
	{[]string{"qwen"}, "activation", []string{`"swiglu"`}},
	{[]string{"qwen"}, "pos_emb", []string{`"rotary"`}},
}

// isFixed reports whether a key of the type is one whose other values are refused.
func isFixed(key, modelType string) bool {
	return slices.ContainsFunc(fixed, func(f fixedKey) bool { return f.key == key && slices.Contains(f.types, modelType) })
}

// checkFixed refuses other values of the fixed keys of a type, and of the name that the configuration has for it.
func checkFixed(o config.Object, modelType, name string) {
	for _, f := range fixed {
		if !slices.Contains(f.types, modelType) && !slices.Contains(f.types, name) || !o.Has(f.key) {
			continue
		}
		var value bytes.Buffer
		if json.Compact(&value, o.Keys[f.key]) != nil || !slices.Contains(f.values, value.String()) {
			o.Fail(f.key, "be "+strings.Join(f.values, " or ")+", which is what models of this type compute")
		}
	}
}
