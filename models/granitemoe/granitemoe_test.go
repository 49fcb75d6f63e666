package granitemoe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/granitemoe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every granitemoe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "granitemoe-")
}
