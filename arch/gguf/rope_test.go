package gguf

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/ingotml/ingot/arch/config"
)

// metadata is a file with keys only.
type metadata map[string]any

func (m metadata) Value(key string) (any, bool) { v, ok := m[key]; return v, ok }

func (m metadata) Shape(string) ([]int64, bool) { return nil, false }

func (m metadata) Floats(string) ([]float32, error) { return nil, ErrMetadata }

// llama.cpp multiplies yarn's own factor, 0.1 ln(factor) + 1, by attn_factor, and does not use yarn_attn_factor, which
// is what transformers uses (llama-context.cpp).
func TestGGUFAttentionFactor(t *testing.T) {
	own := 0.1*math.Log(4) + 1
	for _, c := range []struct {
		keys map[string]any
		want any // attention_factor; nil = none
	}{
		{map[string]any{}, nil},
		{map[string]any{"attn_factor": json.Number("1")}, nil},
		{map[string]any{"attn_factor": json.Number("1.5")}, 1.5 * own},
		{map[string]any{"yarn_attn_factor": json.Number("1.25")}, json.Number("1.25")},
		{map[string]any{"yarn_attn_factor": json.Number("1.25"), "attn_factor": json.Number("2")}, 2.5},
	} {
		file := metadata{
			"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": json.Number("4"),
			"llama.rope.scaling.original_context_length": json.Number("1024"),
		}
		for key, v := range c.keys {
			file["llama.rope.scaling."+key] = v
		}
		config := map[string]any{}
		if err := setRope(config, "llama", file); err != nil {
			t.Fatal(err)
		}
		if got := config["rope_scaling"].(map[string]any)["attention_factor"]; got != c.want {
			t.Errorf("%v: attention_factor = %v, want %v", c.keys, got, c.want)
		}
	}
	for _, bad := range []any{json.Number("0"), json.Number("-1"), "x"} {
		file := metadata{"llama.rope.scaling.type": "yarn", "llama.rope.scaling.attn_factor": bad}
		if err := setRope(map[string]any{}, "llama", file); err == nil {
			t.Errorf("attn_factor = %v: no error", bad)
		}
	}
}

// The factor that a file is written with is the one that it is read with.
func TestGGUFWritesAttentionFactor(t *testing.T) {
	r := config.Rope{Theta: 1e4, Type: config.RopeYarn, Factor: 8, OriginalMax: 512, Truncate: true, AttentionFactor: 1.25}
	h := Header{Factors: map[string][]float32{}}
	file := metadata{}
	err := Map{Architecture: "llama"}.writeRope(r, 64, 64, &h, func(key string, v any) {
		if x, ok := v.(float32); ok {
			v = numbers32([]float32{x})[0]
		}
		file["llama."+key] = v
	})
	config := map[string]any{}
	if err != nil || setRope(config, "llama", file) != nil {
		t.Fatal(err)
	}
	got, _ := config["rope_scaling"].(map[string]any)["attention_factor"].(float64)
	if math.Abs(got-1.25) > 1e-6 {
		t.Errorf("attention_factor = %v, want 1.25", got)
	}
}
