package arch_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
)

// Keys that the reference takes for granted have the value that its code computes, or are refused. Keys that all types'
// shared code reads are refused where a type does not support them.
func TestFixedKeys(t *testing.T) {
	for _, c := range []struct{ checkpoint, key, value, want string }{
		{"glm_moe_dsa", "indexer_rope_interleave", "true", ""},
		{"glm_moe_dsa", "indexer_rope_interleave", "false", "indexer_rope_interleave = false: must be true, which is what"},
		{"glm_moe_dsa", "moe_layer_freq", "2", "moe_layer_freq = 2: must be 1"},
		{"qwen3_5", "text_config.output_gate_type", ` "swish" `, ""},
		{"qwen3_5", "text_config.output_gate_type", `"sigmoid"`, `text_config.output_gate_type = "sigmoid": must be "silu"`},
		{"starcoder2", "norm_type", `"rms_norm"`, `must be "layer_norm"`},
		{"llama", "per_layer_config", "{}", ""},
		{"llama", "per_layer_config", `{"1": {"intermediate_size": 8}}`, "per_layer_config = "},
		{"qwen3_5", "text_config.per_layer_config", `{"1": {"head_dim": 8}}`, "must be empty: layers that differ (1) are"},
	} {
		_, err := arch.Detect(edited(t, c.checkpoint, c.key, c.value))
		ok := errors.Is(err, config.ErrBad) && strings.Contains(err.Error(), c.want)
		if c.want == "" && err != nil || c.want != "" && !ok {
			t.Errorf("%s, %s %s: %v", c.checkpoint, c.key, c.value, err)
		}
	}
}

// A key may have another name, which wins over its own, as in transformers.
func TestOtherNames(t *testing.T) {
	for _, c := range []struct{ checkpoint, own, other, value string }{
		{"gpt2", "n_head", "num_attention_heads", "2"},
		{"nemotron_h", "time_step_min", "mamba_dt_min", "0.5"},
		{"nemotron_h", "n_groups", "mamba_n_groups", "1"},
		{"recurrent_gemma", "attention_window_size", "sliding_window", "5"},
		{"deepseek_v32", "n_routed_experts", "num_experts", "8"},
	} {
		config := edited(t, c.checkpoint, c.own, c.value)
		want, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, own := range []string{"-", "7"} {
			renamed := setKey(t, setKey(t, config, []string{c.own}, own), []string{c.other}, c.value)
			got, err := arch.Detect(renamed)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s with %s: %v, %s", c.checkpoint, c.other, err, difference(got, want))
			}
			for _, key := range arch.Unread(renamed) {
				if key == c.own || key == c.other {
					t.Errorf("%s with %s does not read %s", c.checkpoint, c.other, key)
				}
			}
		}
	}
}

// A key that a type does not read is named, unless it cannot have an influence or says that there is nothing.
func TestUnread(t *testing.T) {
	for key, want := range map[string]string{
		"residual_scale": "residual_scale", "hidden_dropout": "", "_private": "", "image_token_id": "", "use_cache": "",
	} {
		config := setKey(t, edited(t, "llama", "strange", "null"), []string{key}, "2")
		if got := strings.Join(arch.Unread(config), " "); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
	for _, nothing := range []string{"false", "[]", "0", `""`, "{}"} {
		if got := arch.Unread(edited(t, "llama", "residual_scale", nothing)); len(got) > 0 {
			t.Errorf("%s: %q", nothing, got)
		}
	}
	nested := edited(t, "gemma3", "text_config.residual_scale", "2")
	if got := strings.Join(arch.Unread(nested), " "); got != "text_config.residual_scale" {
		t.Errorf("nested: %q", got)
	}
	if got := arch.Unread([]byte(`{"model_type": "new"}`)); got != nil {
		t.Errorf("an unknown type: %q", got)
	}
}
