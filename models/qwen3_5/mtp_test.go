package qwen3_5_test

import (
	"testing"

	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestDraft checks the multi-token prediction heads.
func TestDraft(t *testing.T) {
	for _, name := range []string{"qwen3_5-published", "qwen3_5-published-tied"} {
		t.Run(name, func(t *testing.T) { modeltest.Draft(t, name) })
	}
	c := modeltest.Load(t, "qwen3_5-default")
	if c.Model.(models.Drafter).Draft() != nil {
		t.Error("qwen3_5-default has no head that drafts, and offers one")
	}
}
