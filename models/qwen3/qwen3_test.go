package qwen3_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/qwen3"
)

// TestReference runs every qwen3 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "qwen3-")
}

// Texts that exceed the model's original context.
func TestLengths(t *testing.T) {
	for _, name := range []string{"long-qwen3-dynamic", "long-qwen3-longrope"} {
		t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Lengths(t, name) })
	}
}
