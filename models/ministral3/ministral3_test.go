package ministral3_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/ministral3"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every ministral3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "ministral3-")
}
