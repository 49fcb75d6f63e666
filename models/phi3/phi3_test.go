package phi3_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/phi3"
)

// TestReference runs every phi3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "phi3-")
}

// A text that exceeds the context before scaling.
func TestLengths(t *testing.T) { modeltest.Load(t, "long-phi3").Lengths(t, "long-phi3") }
