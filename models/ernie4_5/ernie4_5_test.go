package ernie4_5_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/ernie4_5"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every ernie4_5 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "ernie4_5-")
}
