package table_test

import (
	"testing"

	"github.com/ingotml/ingot/arch/table"
)

func TestSplitLayer(t *testing.T) {
	for name, want := range map[string]struct {
		pattern string
		layer   int
	}{
		"model.layers.12.mlp.up_proj.weight":      {"model.layers.*.mlp.up_proj.weight", 12},
		"model.layers.3.experts.7.up_proj.weight": {"model.layers.*.experts.7.up_proj.weight", 3},
		"h.0.attn.c_attn.weight":                  {"h.*.attn.c_attn.weight", 0},
		"lm_head.weight":                          {"lm_head.weight", -1},
		"model.layers.x2.weight":                  {"model.layers.x2.weight", -1},
	} {
		if pattern, layer := table.SplitLayer(name); pattern != want.pattern || layer != want.layer {
			t.Errorf("%s: %s, %d", name, pattern, layer)
		}
	}
}
