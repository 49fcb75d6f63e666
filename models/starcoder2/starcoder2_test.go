package starcoder2_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/starcoder2"
)

// TestReference runs every starcoder2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "starcoder2-")
}
