package cohere2_moe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/cohere2_moe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every cohere2_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "cohere2_moe-")
}
