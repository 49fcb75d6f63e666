package granitemoehybrid_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/granitemoehybrid"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every granitemoehybrid checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "granitemoehybrid-")
}
