package olmo_hybrid_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/olmo_hybrid"
)

// TestReference runs every olmo_hybrid checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "olmo_hybrid-")
}
