package bamba_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/bamba"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every bamba checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "bamba-")
}
