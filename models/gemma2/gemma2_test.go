package gemma2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gemma2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gemma2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gemma2-")
}
