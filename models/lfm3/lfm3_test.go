package lfm3_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/lfm3"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every lfm3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "lfm3-")
}
