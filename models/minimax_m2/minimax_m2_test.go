package minimax_m2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/minimax_m2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every minimax_m2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "minimax_m2-")
}
