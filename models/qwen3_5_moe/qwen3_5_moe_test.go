package qwen3_5_moe_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/qwen3_5_moe"
)

// TestReference runs every qwen3_5_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	// The recurrent state accumulates errors, and the routers are nearly undecided at some tokens.
	modeltest.Every(t, modeltest.Limits{Int8: 0.06}, "qwen3_5_moe-")
}

// TestDraft checks the multi-token prediction heads, which have experts too.
func TestDraft(t *testing.T) {
	for _, name := range []string{"qwen3_5_moe-published", "qwen3_5_moe-next-published"} {
		t.Run(name, func(t *testing.T) { modeltest.Draft(t, name) })
	}
}
