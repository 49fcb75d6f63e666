package gemma4_test

import (
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/models/modeltest"

	_ "github.com/ingotml/ingot/models/gemma4"
)

// TestReference runs every gemma4 checkpoint of testdata.
func TestReference(t *testing.T) {
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "gemma4-") {
			t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
		}
	}
}
