package phimoe_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/phimoe"
)

// TestReference runs every phimoe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "phimoe-")
}

// A text that exceeds the context before scaling.
func TestLengths(t *testing.T) { modeltest.Load(t, "long-phimoe").Lengths(t, "long-phimoe") }
