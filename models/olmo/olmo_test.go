package olmo_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/olmo"
)

// TestReference runs every olmo checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "olmo-")
}
