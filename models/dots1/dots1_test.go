package dots1_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/dots1"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every dots1 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{Int8: 0.012}, "dots1-")
}
