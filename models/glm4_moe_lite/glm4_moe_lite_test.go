package glm4_moe_lite_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/glm4_moe_lite"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm4_moe_lite checkpoint of testdata.
func TestReference(t *testing.T) {
	// The routers are nearly undecided at some tokens.
	modeltest.Every(t, modeltest.Limits{Int8: 0.03}, "glm4_moe_lite-")
}
