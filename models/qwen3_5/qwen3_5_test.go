package qwen3_5_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/qwen3_5"
)

// TestReference runs every qwen3_5 checkpoint of testdata.
func TestReference(t *testing.T) {
	for _, name := range checkpoints(t) {
		t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
	}
}

func checkpoints(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "qwen3_5-") {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no model of this type", modeltest.Dir(""))
	}
	return names
}
