package mamba_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/mamba"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every mamba checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "mamba-")
}
