package helium_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/helium"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every helium checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "helium-")
}
