package arch_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/arch"
)

// The state of 1000 tokens, counted by hand from the configurations.
func TestStateElements(t *testing.T) {
	for name, want := range map[string]int64{
		"demo":                  5 * (2 * 2 * 32) * 1000,
		"qwen3-window":          (2*2*16)*1000 + 3*(2*2*16)*8,
		"gemma3-published":      (2*2*16)*1000 + 3*(2*2*16)*8,
		"gemma4-e2b":            (2*1*32)*1000 + 2*(2*1*16)*8, // two of five layers share another layer's keys and values
		"glm4_moe_lite-default": 3 * (32 + 8) * 1000,
		"deepseek_v3-published": 2 * (32 + 8) * 1000,
		"longcat_flash-saved":   4 * (16 + 8) * 1000, // two layers with two attentions each
		// Three windows, projections of 8 and of 8 positions, entries of 4 and of 8.
		"deepseek_v4-published": 3*32*9 + 4*(32+16)*8 + 2*32*8 + (32+16)*250 + 32*125,
		"glm_moe_dsa-published": (3*(32+8) + 2*16) * 1000, // two of three layers have index keys
		"qwen3_5-default":       (2*1*32)*1000 + 3*(2*4*16*16+3*(2*2*16+4*16)),
		// Keys, values and two index keys of blocks of 4; a delta net, and streams of 9 rows and two tokens of n-grams.
		"qwen4_exp-published": 2*2*16*1000 + 16*4 + 16*250 + 2*4*16*16 + 3*(2*2*16+4*16) + 9*2*64 + 2*2,
		"qwen3_5_moe-default": (2*1*32)*1000 + 3*(2*4*16*16+3*(2*2*16+4*16)),
	} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "models", name, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Detect(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := arch.StateElements(m, 1000); got != want {
			t.Errorf("%s: %d elements, want %d", name, got, want)
		}
	}
}
