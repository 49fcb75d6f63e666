package apertus_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/apertus"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every apertus checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "apertus-")
}
