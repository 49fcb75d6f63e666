package exaone4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/exaone4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every exaone4 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "exaone4-")
}
