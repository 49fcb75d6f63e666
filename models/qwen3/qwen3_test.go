package qwen3_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/qwen3"
)

// TestReference runs every qwen3 checkpoint of testdata.
func TestReference(t *testing.T) {
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "qwen3-") {
			found = true
			t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
		}
	}
	if !found {
		t.Errorf("%s has no model of this type", modeltest.Dir(""))
	}
}

// Texts beyond the context that the model was made for.
func TestLengths(t *testing.T) {
	for _, name := range []string{"long-qwen3-dynamic", "long-qwen3-longrope"} {
		t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Lengths(t, name) })
	}
}
