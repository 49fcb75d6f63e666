package mamba2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/mamba2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every mamba2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "mamba2-")
}
