package olmo2_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/olmo2"
)

// TestReference runs every olmo2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "olmo2-")
}
