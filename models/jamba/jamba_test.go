package jamba_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/jamba"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every jamba checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "jamba-")
}
