package qwen3_moe_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/qwen3_moe"
)

// TestReference runs every qwen3_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "qwen3_moe-") {
			found = true
			t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
		}
	}
	if !found {
		t.Errorf("%s has no model of this type", modeltest.Dir(""))
	}
}
