package lfm2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/lfm2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every lfm2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "lfm2-")
}
