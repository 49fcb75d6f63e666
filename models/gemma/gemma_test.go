package gemma_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gemma"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gemma checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gemma-")
}
