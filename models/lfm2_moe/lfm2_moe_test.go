package lfm2_moe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/lfm2_moe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every lfm2_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "lfm2_moe-")
}
