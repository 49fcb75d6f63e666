package minicpm3_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/minicpm3"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every minicpm3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "minicpm3-")
}
