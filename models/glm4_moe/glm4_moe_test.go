package glm4_moe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/glm4_moe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm4_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "glm4_moe-")
}

// TestDraft checks the multi-token prediction head.
func TestDraft(t *testing.T) { modeltest.Draft(t, "glm4_moe-published") }
