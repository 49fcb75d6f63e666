package llama_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/llama"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every llama checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "llama-", "demo")
}
