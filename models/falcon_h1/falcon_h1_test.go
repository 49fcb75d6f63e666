package falcon_h1_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/falcon_h1"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every falcon_h1 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "falcon_h1-")
}
