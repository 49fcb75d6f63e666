package arch_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
)

// Other published spellings of a configuration mean the same model.
func TestPublishedSpellings(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, same string }{
		{"glm_moe_dsa", "layer_types", `["deepseek_sparse_attention","deepseek_sparse_attention"]`,
			`["indexed_attention","indexed_attention"]`},
		{"mamba2", "time_step_limit", "[0.0,1e308]", `[0.0,{"__float__":"Infinity"}]`},
		{"mamba2", "time_step_limit", "[0.5,3.5e38]", `[0.5,{"__float__":"Infinity"}]`},
		{"mamba2", "time_step_limit", "[0.0,Infinity]", "-"},
		{"llama4", "no_rope_layers", "[]", "null"},
		{"llama4", "no_rope_layers", "[]", "-"},
		{"smollm3", "no_rope_layers", "[]", "-"},
		{"dots1", "scoring_func", `"noaux_tc"`, `"sigmoid"`},
		{"exaone_moe", "architectures", `["ExaoneMoEForCausalLM"]`, `["ExaoneMoeForCausalLM"]`},
		{"qwen2", "is_causal", "true", "-"},
		{"qwen2", "rope_scaling", `{"type":"mrope","mrope_section":[2,3,3]}`, `{"type":"default"}`},
	} {
		got, err := arch.Detect(textual(t, c.checkpoint, c.key, c.value))
		want, wantErr := arch.Detect(textual(t, c.checkpoint, c.key, c.same))
		if err != nil || wantErr != nil {
			t.Errorf("%s: %s = %s: %v; %s: %v", c.checkpoint, c.key, c.value, err, c.same, wantErr)
			continue
		}
		if c.key == "architectures" { // which only facts have
			got, want = withoutClass(got), withoutClass(want)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s = %s:\n%+v, want\n%+v", c.checkpoint, c.key, c.value, got, want)
		}
	}
}

// The factor of the experts' weights is in no tensor, and a deepseek_ref leaves it out.
func TestDeepseekRef(t *testing.T) {
	for _, c := range []struct {
		modelType, experts, scaling string
		want                        float64 // 0 = refused
	}{
		{"deepseek_v4", "256", "-", 1.5},
		{"deepseek_v4", "384", "-", 1.5}, // as the reference
		{"deepseek_v4", "384", "2.5", 2.5},
		{"deepseek_ref", "256", "-", 1.5},
		{"deepseek_ref", "384", "-", 2.5},
		{"deepseek_ref", "384", "null", 2.5},
		{"deepseek_ref", "384", "3", 3},
		{"deepseek_ref", "8", "2", 2},
		{"deepseek_ref", "8", "-", 0},
		{"deepseek_ref", "8", "null", 0},
	} {
		config := edited(t, "deepseek_v4", "model_type", `"`+c.modelType+`"`)
		config = setKey(t, config, []string{"n_routed_experts"}, c.experts)
		m, err := arch.Detect(setKey(t, config, []string{"routed_scaling_factor"}, c.scaling))
		if c.want == 0 {
			if err == nil || !strings.Contains(err.Error(), "routed_scaling_factor: missing") {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || m.(*types.DeepseekV4).Mixture.Router.Scaling != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// textual is edited for values that are not JSON.
func textual(t *testing.T, checkpoint, key, value string) []byte {
	const mark = `"@"`
	if json.Valid([]byte(value)) || value == "-" {
		return edited(t, checkpoint, key, value)
	}
	return []byte(strings.Replace(string(edited(t, checkpoint, key, mark)), mark, value, 1))
}

func withoutClass(m arch.Model) arch.Model {
	if x, ok := m.(*types.ExaoneMoe); ok {
		x.Architecture = ""
	}
	return m
}

// A decoder without a causal mask is an encoder, of any type.
func TestEncodersAreRefused(t *testing.T) {
	for _, c := range checkpoints(t) {
		data := setKey(t, c.Config, []string{"is_causal"}, "false")
		_, err := arch.Detect(data)
		if !errors.Is(err, config.ErrBad) || !strings.Contains(err.Error(), "is_causal = false: must be true: ") {
			t.Errorf("%s: %v", c.Name, err)
		}
		var nested struct {
			Text json.RawMessage `json:"text_config"`
		}
		if json.Unmarshal(c.Config, &nested) != nil || nested.Text == nil {
			continue
		}
		data = setKey(t, c.Config, []string{"text_config", "is_causal"}, "false")
		if _, err := arch.Detect(data); !errors.Is(err, config.ErrBad) ||
			!strings.Contains(err.Error(), "text_config.is_causal") {
			t.Errorf("%s, nested: %v", c.Name, err)
		}
	}
}

// A qwen4_exp rotates whole heads if its rope parameters do not say which part.
func TestQwen4ExpPartialRope(t *testing.T) {
	const plain = `{"rope_type":"default","rope_theta":10000`
	for _, c := range []struct {
		key, value string
		want       float64
	}{
		{"rope_parameters", plain + `}`, 1},
		{"rope_parameters", plain + `,"partial_rotary_factor":0.5}`, 0.5},
		{"rope_scaling", plain + `}`, 1},
		{"-", "", 1},
	} {
		config := json.RawMessage(edited(t, "qwen4_exp", "model_type", `"qwen4_exp_text"`))
		var all map[string]json.RawMessage
		if err := json.Unmarshal(config, &all); err != nil {
			t.Fatal(err)
		}
		text := map[string]json.RawMessage{}
		nested := json.Unmarshal(all["text_config"], &text) == nil && len(text) > 0
		if !nested {
			text = all
		}
		for _, key := range []string{"rope_parameters", "rope_scaling", "partial_rotary_factor"} {
			delete(text, key)
		}
		if text["indexer_head_dim"] = text["head_dim"]; c.value != "" {
			text[c.key] = json.RawMessage(c.value)
		}
		if nested {
			all["text_config"], _ = json.Marshal(text) // raw JSON always encodes
		}
		config, _ = json.Marshal(all)
		m, err := types.ParseQwen4Exp(config)
		if err != nil || m.Rope.PartialFactor != c.want {
			t.Errorf("%+v: %+v, %v", c, m, err)
		}
	}
}
