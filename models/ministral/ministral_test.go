package ministral_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/ministral"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every ministral checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "ministral-")
}
