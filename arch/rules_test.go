package arch_test

import (
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

func mustType(t *testing.T, name string) quantize.Type {
	t.Helper()
	q, _, err := quantize.ParseType(name)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Each case is one of the published precision rules, on a published model.
func TestPrecision(t *testing.T) {
	const p = "model.language_model.layers."
	for _, c := range []struct {
		model, tensor, base, want, rule string
	}{
		// generic
		{"Qwen3-8B", "model.embed_tokens.weight", "int4", "int8", "embedding"},
		{"Qwen3-8B", "model.embed_tokens.weight", "int2-g128", "int8-g128", "embedding"},
		{"Qwen3-8B", "model.embed_tokens.weight", "mxfp4", "int8", "embedding"},
		{"Qwen3-8B", "lm_head.weight", "int4", "int8", "output head"},
		{"Qwen3-8B", "lm_head.weight", "int3-g32", "int8-g32", "output head"},
		{"Qwen3-8B", "lm_head.weight", "nvfp4", "mxfp8", "output head"},
		{"Qwen3-8B", "lm_head.weight", "mxfp8", "mxfp8", "output head"},
		{"Qwen3-8B", "model.layers.9.input_layernorm.weight", "int4", "", "norm"},
		{"Qwen3-8B", "model.layers.9.self_attn.q_norm.weight", "int4", "", "norm"},
		{"Qwen3-8B", "model.layers.9.self_attn.q_proj.weight", "int4", "int4", "base"},
		{"Qwen3-8B", "model.layers.9.self_attn.q_proj.weight", "int6-g128", "int6-g128", "base"},
		{"Qwen3-8B", "model.layers.9.self_attn.k_proj.weight", "int4", "int8", "values, keys, down projection"},
		{"Qwen3-8B", "model.layers.9.self_attn.v_proj.weight", "int2-g32", "int8-g32", "values, keys, down projection"},
		{"Qwen3-8B", "model.layers.9.mlp.down_proj.weight", "mxfp4", "mxfp8", "values, keys, down projection"},
		{"Qwen3-8B", "model.layers.9.mlp.down_proj.weight", "int6", "int6", "base"},
		{"Qwen3-8B", "model.layers.9.mlp.down_proj.weight", "mxfp8", "mxfp8", "base"},
		// experts: promoted in affine formats only
		{"Qwen3-30B-A3B", "model.layers.9.mlp.experts.down_proj", "int4", "int8", "values, keys, down projection"},
		{"Qwen3-30B-A3B", "model.layers.9.mlp.experts.down_proj", "nvfp4", "nvfp4", "base"},
		{"Qwen3-30B-A3B", "model.layers.9.mlp.experts.gate_up_proj", "mxfp4", "mxfp4", "base"},
		{"Qwen3-30B-A3B", "model.layers.9.mlp.gate.weight", "int8", "", "routing"},
		{"GLM-4.7-Flash", "model.layers.9.mlp.gate.e_score_correction_bias", "int4", "", "no weight"},
		{"GLM-4.7-Flash", "model.layers.9.mlp.shared_experts.down_proj.weight", "nvfp4", "nvfp4", "base"},
		{"GLM-4.7-Flash", "model.layers.9.self_attn.kv_b_proj.weight", "int4", "int4", "base"},
		// qwen3_5
		{"Qwen3.5-27B", p + "0.linear_attn.in_proj_a.weight", "int8", "", "decay and step of a gated delta net"},
		{"Qwen3.5-27B", p + "0.linear_attn.in_proj_b.weight", "int8", "", "decay and step of a gated delta net"},
		{"Qwen3.5-27B", p + "0.linear_attn.in_proj_qkv.weight", "int4", "int4", "base"},
		{"Qwen3.5-27B", p + "0.linear_attn.conv1d.weight", "int4", "", "no matrix"},
		{"Qwen3.5-27B", p + "0.linear_attn.A_log", "int4", "", "no weight"},
		{"Qwen3.5-27B", p + "3.self_attn.v_proj.weight", "int4", "int8", "values, keys, down projection"},
		{"Qwen3.5-27B", "model.visual.blocks.0.attn.qkv.weight", "int4", "", "vision"},
		{"Qwen3.5-27B", "mtp.fc.weight", "int4", "int4", "base"},
		{"Qwen3.5-35B-A3B", p + "3.mlp.shared_expert_gate.weight", "int4", "", "routing"},
		// gemma4: the embedding is the head; values and down projections in some layers
		{"gemma-4-31B", "model.language_model.embed_tokens.weight", "int4", "int8", "embedding, which is the head"},
		{"gemma-4-E2B", "model.language_model.embed_tokens_per_layer.weight", "int4", "int8", "per-layer embeddings"},
		{"gemma-4-E2B", "model.language_model.embed_tokens_per_layer.weight", "nvfp4", "mxfp8", "per-layer embeddings"},
		{"gemma-4-E2B", "model.language_model.per_layer_model_projection.weight", "int4", "int4", "base"},
		{"gemma-4-E2B", p + "3.mlp.down_proj.weight", "int4", "int8", "values and down projection, some layers"},
		{"gemma-4-E2B", p + "4.mlp.down_proj.weight", "int4", "int4", "values, keys, down projection"},
		{"gemma-4-E2B", p + "4.self_attn.v_proj.weight", "nvfp4", "nvfp4", "values, keys, down projection"},
		{"gemma-4-E2B", p + "3.self_attn.k_proj.weight", "int4", "int4", "values, keys, down projection"},
		{"gemma-4-31B", p + "5.self_attn.k_proj.weight", "int4", "int8", "keys that are values, some layers"},
		{"gemma-4-31B", p + "11.self_attn.k_proj.weight", "int4", "int4", "values, keys, down projection"},
		{"gemma-4-26B-A4B", p + "0.experts.down_proj", "nvfp4", "mxfp8", "values and down projection, some layers"},
		{"gemma-4-26B-A4B", p + "4.experts.down_proj", "nvfp4", "nvfp4", "values, keys, down projection"},
		{"gemma-4-26B-A4B", p + "0.router.proj.weight", "int4", "", "routing"},
		// drafts
		{"gemma-4-E2B-assistant", "model.embed_tokens.weight", "int4", "int4", "head of a draft"},
		{"gemma-4-E2B-assistant", "masked_embedding.centroids.weight", "int4", "", "embedding"},
		{"gemma-4-E2B-assistant", "masked_embedding.token_ordering", "int4", "", "embedding"},
		{"gemma-4-E2B-assistant", "pre_projection.weight", "int4", "int4", "base"},
		// casts
		{"Qwen3-8B", "model.embed_tokens.weight", "f16", "f16", "cast"},
		{"Qwen3-8B", "model.norm.weight", "bf16", "bf16", "cast"},
		{"Qwen3.5-27B", p + "0.linear_attn.A_log", "bf16", "", "decides in float32"},
		{"GLM-4.7-Flash", "model.layers.9.mlp.gate.e_score_correction_bias", "bf16", "", "decides in float32"},
		{"gemma-4-E2B", "model.language_model.embed_tokens.weight", "bf16", "bf16", "cast"},
	} {
		m := publishedModel(t, c.model)
		var shape []int64
		for _, s := range m.Table().Specs {
			if s.Name == c.tensor {
				shape = s.Shape
			}
		}
		if shape == nil {
			t.Errorf("%s has no tensor %s", c.model, c.tensor)
			continue
		}
		got, rule := m.Rules().Precision(c.tensor, shape, mustType(t, c.base))
		if got.String() != c.want || rule != c.rule {
			t.Errorf("%s: %s at %s is %q by %q, want %q by %q", c.model, c.tensor, c.base, got, rule, c.want, c.rule)
		}
	}
}

func TestPrecisionOfOddShapes(t *testing.T) {
	m := mustLlama(t)
	for _, c := range []struct {
		name  string
		shape []int64
		base  string
		want  string
		rule  string
	}{
		{"model.layers.0.self_attn.q_proj.weight", []int64{64, 96}, "int4", "", "rows are not whole groups"},
		{"model.layers.0.self_attn.q_proj.weight", []int64{64, 96}, "int4-g32", "int4-g32", "base"},
		{"model.layers.0.self_attn.q_proj.weight", []int64{16, 32}, "int4-g32", "", "small"},
		{"lm_head.weight", []int64{384, 96}, "int4", "", "output head (int8 does not fit the shape)"},
		// nvfp4 has groups of 16; its 8-bit type has groups of 32.
		{
			"model.layers.0.self_attn.v_proj.weight", []int64{64, 48}, "nvfp4", "nvfp4",
			"values, keys, down projection (mxfp8 does not fit the shape)",
		},
	} {
		got, rule := m.Rules().Precision(c.name, c.shape, mustType(t, c.base))
		if got.String() != c.want || rule != c.rule {
			t.Errorf("%s %v at %s is %q by %q, want %q by %q", c.name, c.shape, c.base, got, rule, c.want, c.rule)
		}
	}
	if got, rule := m.Rules().Precision("lm_head.weight", []int64{384, 64}, 0); got != 0 || rule != "kept" {
		t.Errorf("nothing asked for: %q by %q", got, rule)
	}
	if got, _ := m.Rules().AsDraft().Precision("lm_head.weight", []int64{384, 64}, quantize.Int4); got != quantize.Int4 {
		t.Errorf("head of a draft is %q", got)
	}
}

// The first rule set keeps embeddings.
func TestPrecisionOfRuleSets(t *testing.T) {
	const name = "model.embed_tokens.weight"
	m := publishedModel(t, "Qwen3-8B")
	for _, c := range []struct {
		set  recipe.RuleSet
		want string
	}{{recipe.RuleSet1, ""}, {recipe.RuleSet2, "int8"}, {"", "int8"}} {
		if got, rule := arch.RulesOf(m, c.set).Precision(name, []int64{151936, 4096}, quantize.Int4); got.String() != c.want {
			t.Errorf("%q: %s is %q by %q, want %q", c.set, name, got, rule, c.want)
		}
	}
	for _, set := range recipe.RuleSets() {
		if got, err := recipe.ParseRuleSet(string(set)); got != set || err != nil {
			t.Errorf("%s: %q, %v", set, got, err)
		}
	}
	if _, err := recipe.ParseRuleSet("rules-0"); err == nil || !strings.Contains(err.Error(), "rules-1") {
		t.Errorf("an unknown rule set: %v", err)
	}
}

// For every base type, every tensor of every model gets a valid type and a named rule.
func TestPrecisionOfEveryTensor(t *testing.T) {
	for _, p := range published {
		m := publishedModel(t, p.name)
		rules := m.Rules()
		for _, s := range m.Table().Specs {
			for _, base := range quantize.Types() {
				got, rule := rules.Precision(s.Name, s.Shape, base)
				if rule == "" || rule == "no rule" || strings.Contains(rule, "\n") {
					t.Fatalf("%s: %s at %s: rule %q", p.name, s.Name, base, rule)
				}
				if got == 0 {
					continue
				}
				if _, err := got.Parts(quantize.BF16, s.Shape); err != nil {
					t.Fatalf("%s: %s at %s: %v", p.name, s.Name, base, err)
				}
			}
		}
	}
}
