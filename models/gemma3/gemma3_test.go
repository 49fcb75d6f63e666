package gemma3_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gemma3"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gemma3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gemma3-")
}
