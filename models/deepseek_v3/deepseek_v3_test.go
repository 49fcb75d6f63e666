package deepseek_v3_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/deepseek_v3"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every deepseek_v3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "deepseek_v3-")
}

// TestDraft checks the multi-token prediction head.
func TestDraft(t *testing.T) { modeltest.Draft(t, "deepseek_v3-published") }
