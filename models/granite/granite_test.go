package granite_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/granite"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every granite checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "granite-")
}
