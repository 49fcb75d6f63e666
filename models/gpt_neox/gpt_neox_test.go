package gpt_neox_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gpt_neox"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gpt_neox checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gpt_neox-")
}
