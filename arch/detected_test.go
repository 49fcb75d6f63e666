package arch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

func TestDetectFamily(t *testing.T) {
	for _, c := range []struct{ config, parser, renderer, capabilities string }{
		{`{"architectures":["LlamaForCausalLM"],"model_type":"llama"}`, "", "", "completion"},
		{
			`{"architectures":["Glm4MoeLiteForCausalLM"],"model_type":"glm4_moe_lite"}`, "glm-4.7", "glm-4.7",
			"completion tools thinking",
		},
		{`{"model_type":"glm4_moe_lite"}`, "glm-4.7", "glm-4.7", "completion tools thinking"},
		{`{"architectures":["GLM-4-Custom"]}`, "glm-4.7", "glm-4.7", "completion tools thinking"},
		{`{"architectures":["DeepseekV3ForCausalLM"]}`, "deepseek3", "deepseek3", "completion tools thinking"},
		{`{"architectures":["DeepseekV32ForCausalLM"]}`, "deepseek3.2", "deepseek3", "completion tools thinking"},
		{`{"model_type":"deepseek_v4"}`, "deepseek4", "deepseek3", "completion tools thinking"},
		{`{"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3"}`, "qwen3", "qwen3-coder", "completion tools thinking"},
		{
			`{"architectures":["Qwen3MoeForCausalLM"],"model_type":"qwen3_moe"}`, "qwen3", "qwen3-coder",
			"completion tools thinking",
		},
		// The more specific name wins, in any position.
		{
			`{"architectures":["Qwen3_5ForCausalLM"],"model_type":"qwen3_5_text"}`, "qwen3.5", "qwen3.5",
			"completion tools thinking",
		},
		{
			`{"architectures":["Qwen3NextForCausalLM"],"model_type":"qwen3_next"}`, "qwen3.5", "qwen3.5",
			"completion tools thinking",
		},
		{
			`{"architectures":["Qwen3_5ForConditionalGeneration"],"vision_config":{},"image_token_id":5}`, "qwen3.5", "qwen3.5",
			"completion tools thinking vision",
		},
		{
			`{"architectures":["Qwen3_5MoeForConditionalGeneration"],"vision_start_token_id":5,"vision_end_token_id":6}`,
			"qwen3.5", "qwen3.5", "completion tools thinking vision",
		},
		{
			`{"architectures":["Qwen3_5ForConditionalGeneration"],"image_token_id":5}`, "qwen3.5", "qwen3.5",
			"completion tools thinking vision",
		},
		{
			`{"architectures":["Qwen3_5ForConditionalGeneration"],"vision_config":null}`, "qwen3.5", "qwen3.5",
			"completion tools thinking",
		},
		{
			`{"architectures":["Gemma4UnifiedForConditionalGeneration"],"model_type":"gemma4_unified"}`, "gemma4", "gemma4",
			"completion tools thinking",
		},
		// Their towers are not imported, so their images have no vision capability.
		{
			`{"architectures":["Gemma4ForConditionalGeneration"],"vision_config":{},"image_token_id":5}`, "gemma4", "gemma4",
			"completion tools thinking",
		},
		{
			`{"architectures":["Gemma3ForConditionalGeneration"],"model_type":"gemma3","vision_config":{}}`, "", "",
			"completion",
		},
		{
			`{"architectures":["NemotronHForCausalLM"],"model_type":"nemotron_h"}`, "nemotron-3", "nemotron-3",
			"completion tools thinking",
		},
		{`{"architectures":["LlavaForConditionalGeneration"],"vision_config":{}}`, "", "", "completion vision"},
		{`{}`, "", "", "completion"},
	} {
		d, err := arch.DetectFamily([]byte(c.config))
		if err != nil || d.Parser != c.parser || d.Renderer != c.renderer ||
			strings.Join(d.Capabilities, " ") != c.capabilities {
			t.Errorf("%s: %+v, %v", c.config, d, err)
		}
	}
	if _, err := arch.DetectFamily([]byte(`{"architectures":5}`)); !errors.Is(err, config.ErrBad) {
		t.Errorf("error %v", err)
	}
}

// A model reports vision if and only if its table has a tower.
func TestVisionMatchesTable(t *testing.T) {
	for _, c := range checkpoints(t) {
		d, err := arch.DetectFamily(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		tower := slices.ContainsFunc(c.detect(t).Table().Specs,
			func(s table.Spec) bool { return strings.Contains(s.Name, "visual") })
		if strings.Contains(c.Name, "mlx") {
			continue // mlx-lm removed the tower but not the token ids
		}
		if sees := slices.Contains(d.Capabilities, arch.CapVision); sees != tower {
			t.Errorf("%s: vision %v, tower %v", c.Name, sees, tower)
		}
	}
}
