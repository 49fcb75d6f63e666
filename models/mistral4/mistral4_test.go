package mistral4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/mistral4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every mistral4 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "mistral4-")
}
