package phi4_multimodal_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/phi4_multimodal"
)

// TestReference runs every phi4_multimodal checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "phi4_multimodal-")
}
