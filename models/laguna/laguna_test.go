package laguna_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/laguna"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every laguna checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "laguna-")
}
