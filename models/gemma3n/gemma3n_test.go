package gemma3n_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gemma3n"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gemma3n checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gemma3n-")
}
