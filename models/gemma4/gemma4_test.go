package gemma4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gemma4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gemma4 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gemma4-")
}
