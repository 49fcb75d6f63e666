package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A token reads the chosen experts of a stack, a row of an embedding that is not the head, and the rest as a whole.
func TestReadShare(t *testing.T) {
	for name, experts := range map[string]bool{"qwen3_moe-stacked": true, "mixtral-published": true, "llama-tied": false} {
		config, err := os.ReadFile(filepath.Join("..", "testdata", "models", name, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := Detect(config)
		if err != nil {
			t.Fatal(err)
		}
		stacks, head := 0, slices.ContainsFunc(m.Table().Specs, Spec.IsHead)
		for _, s := range m.Table().Specs {
			share := ReadShare(m, s)
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
