package afmoe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/afmoe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every afmoe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "afmoe-")
}
