package arch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
)

func mustDetect(t *testing.T, config string) arch.Model {
	t.Helper()
	m, err := arch.Detect([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCheckDraft(t *testing.T) {
	get := func(name string) arch.Model { return publishedModel(t, name) }
	changed := func(name, old, new string) arch.Model {
		t.Helper()
		for _, p := range published {
			if p.name == name {
				if !strings.Contains(p.config, old) {
					t.Fatalf("%s does not hold %s", name, old)
				}
				return mustDetect(t, strings.Replace(p.config, old, new, 1))
			}
		}
		t.Fatalf("no configuration %s", name)
		return nil
	}
	for _, c := range []struct {
		name          string
		target, draft arch.Model
		want          string // "" = no error
	}{
		{"assistant", get("gemma-4-E2B"), get("gemma-4-E2B-assistant"), ""},
		{"unified assistant", get("gemma-4-12B"), get("gemma-4-12B-assistant"), ""},
		{"small model of the family", get("Qwen3-8B"), get("Qwen3-0.6B"), ""},
		{"other architecture, same vocabulary", get("Qwen3-30B-A3B"), get("Qwen3-0.6B"), ""},
		{
			"assistant of another size", get("gemma-4-E4B"), get("gemma-4-E2B-assistant"),
			"backbone_hidden_size = 1536, the model's hidden_size is 2560",
		},
		{"vocabulary", get("Qwen3-8B"), get("Llama-3.1-8B"), "it has a vocabulary of 128256, the model one of 151936"},
		{
			"assistant for another architecture", changed("Qwen3-8B", "151936", "262144"), get("gemma-4-E2B-assistant"),
			"a gemma4_assistant model drafts for gemma4, not for qwen3",
		},
		{"assistant as target", get("gemma-4-E2B-assistant"), get("gemma-4-E2B"), "cannot have a draft, it is one"},
		{"head size", get("gemma-4-E2B"), changed("gemma-4-E2B-assistant", `"global_head_dim":512`, `"global_head_dim":256`),
			"heads of full_attention are 256 wide, the model's 512"},
		{"heads", changed("gemma-4-E2B", `"num_key_value_heads":1`, `"num_key_value_heads":8`), get("gemma-4-E2B-assistant"),
			"its 4 query heads are not a multiple of the model's 8 key heads in layers of sliding_attention"},
		{
			"window", changed("gemma-4-E2B", `"sliding_window":512`, `"sliding_window":1024`), get("gemma-4-E2B-assistant"),
			"its window is 512, the model's 1024",
		},
		{"window of one", changed("gemma-4-E2B", `"sliding_window":512`, `"sliding_window":1`),
			changed("gemma-4-E2B-assistant", `"text_config":{`, `"text_config":{"sliding_window":1,`),
			"a sliding window of 1 leaves none"},
	} {
		err := arch.CheckDraft(c.target, c.draft)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if !errors.Is(err, arch.ErrDraft) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
