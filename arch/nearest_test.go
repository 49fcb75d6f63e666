package arch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/table"
)

// A checkpoint of an unknown type is described by the type that it is like, and by what differs.
func TestNearest(t *testing.T) {
	config := func(name string) []byte {
		return setKey(t, edited(t, name, "model_type", `"new"`), []string{"architectures"}, `["NewForCausalLM"]`)
	}
	tensors := func(name string) []table.TensorInfo {
		all := checkpoints(t)
		return all[slices.IndexFunc(all, func(c checkpoint) bool { return c.Name == name })].have(t)
	}
	extra := append(tensors("olmo2"), table.TensorInfo{Name: "model.layers.0.gate", DType: "BF16", Shape: []int64{4}})
	small := slices.DeleteFunc(tensors("qwen3"),
		func(i table.TensorInfo) bool { return strings.Contains(i.Name, "layers.1") })
	for _, c := range []struct {
		config string
		have   []table.TensorInfo
		want   string // the beginning
	}{
		{"llama", tensors("llama"), "its tensors have the names and shapes of llama; import it with `--as llama`, "},
		{"apertus", tensors("apertus"), "its tensors have the names and shapes of apertus"},
		{"granite", tensors("granite"), "its tensors have the names and shapes of granite"}, // and of llama
		{"gemma2", tensors("gemma2"), "its tensors have the names and shapes of gemma2"},
		{
			"olmo2", extra, "its tensors are nearest to those of olmo2, from which they differ, so `--as olmo2` would be " +
				"refused: tensor model.layers.0.gate: unknown",
		},
		{"qwen3", small, ""}, // half of it is absent
		{"qwen3", nil, ""},
	} {
		got := arch.Nearest(config(c.config), c.have)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" || strings.Contains(got, "\n") {
			t.Errorf("%s: %q, want %q", c.config, got, c.want)
		}
	}
	// A key that could count decides, one that cannot does not.
	for key, decides := range map[string]bool{"mixer_rms_eps": true, "layer_norm_eps": true, "mixer_dropout": false} {
		got := arch.Nearest(setKey(t, config("llama"), []string{key}, "0.25"), tensors("llama"))
		if decides != strings.HasSuffix(got, "if they count: "+key) || decides == strings.Contains(got, "--as") {
			t.Errorf("%s: %q", key, got)
		}
	}
	if got := arch.Nearest([]byte("{"), tensors("qwen3")); got != "" {
		t.Errorf("broken JSON: %q", got)
	}
}
