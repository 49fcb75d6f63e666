package minimax_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/minimax"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every minimax checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "minimax-")
}
