package llama_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every llama checkpoint of testdata.
func TestReference(t *testing.T) {
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "llama-") || name == "demo" {
			t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
		}
	}
}
