package exaone_moe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/exaone_moe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every exaone_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "exaone_moe-")
}

// TestDraft checks the multi-token prediction head.
func TestDraft(t *testing.T) { modeltest.Draft(t, "exaone_moe-published") }
