package arch_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/table"
)

// A token reads the chosen experts of a stack, a row of an embedding that is not the head, and the rest as a whole.
func TestReadShare(t *testing.T) {
	for name, experts := range map[string]bool{"qwen3_moe-stacked": true, "mixtral-published": true, "llama-tied": false} {
		config, err := os.ReadFile(filepath.Join("..", "testdata", "models", name, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		stacks, head := 0, slices.ContainsFunc(m.Table().Specs, table.Spec.IsHead)
		for _, s := range m.Table().Specs {
			share := arch.ReadShare(m, s)
			switch {
			case s.IsEmbedding() && head:
				if share != 1/float64(s.Shape[0]) {
					t.Errorf("%s: %s: %g", name, s.Name, share)
				}
			case len(s.Shape) == 3 && strings.Contains(s.Name, "experts"):
				if stacks++; share <= 0 || share >= 1 {
					t.Errorf("%s: %s: %g", name, s.Name, share)
				}
			case share != 1:
				t.Errorf("%s: %s: %g", name, s.Name, share)
			}
		}
		if (stacks > 0) != experts {
			t.Errorf("%s: %d stacks of experts", name, stacks)
		}
	}
}

// The largest accepted layers do not overflow.
func TestBoundsOfExperts(t *testing.T) {
	for _, c := range []struct{ checkpoint, experts, width string }{
		{"qwen3_moe", "num_local_experts", "moe_intermediate_size"},
		{"gemma4-26b-a4b", "text_config.num_experts", "text_config.moe_intermediate_size"},
		{"qwen3_5_moe", "text_config.num_experts", "text_config.moe_intermediate_size"},
		{"glm4_moe_lite", "n_routed_experts", "moe_intermediate_size"},
	} {
		data := setKey(t, edited(t, c.checkpoint, c.experts, "4096"), strings.Split(c.width, "."), "1048576")
		data = setKey(t, data, strings.Split(strings.Replace(c.width, "moe_intermediate_size", "hidden_size", 1), "."),
			"1048576")
		if _, err := arch.Detect(data); !errors.Is(err, config.ErrBad) {
			t.Errorf("%s: %v", c.checkpoint, err)
		}
	}
}
