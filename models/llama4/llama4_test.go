package llama4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/llama4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every llama4 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "llama4-")
}
