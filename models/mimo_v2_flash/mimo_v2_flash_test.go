package mimo_v2_flash_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/mimo_v2_flash"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every mimo_v2_flash checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "mimo_v2_flash-")
}

// TestDraft checks the multi-token prediction head.
func TestDraft(t *testing.T) { modeltest.Draft(t, "mimo_v2_flash-published") }
