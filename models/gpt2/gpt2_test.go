package gpt2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gpt2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gpt2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gpt2-")
}
