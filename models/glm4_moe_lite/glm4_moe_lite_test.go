package glm4_moe_lite_test

import (
	"os"
	"strings"
	"testing"

	_ "github.com/ingotml/ingot/models/glm4_moe_lite"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm4_moe_lite checkpoint of testdata.
func TestReference(t *testing.T) {
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "glm4_moe_lite-") {
			found = true
			t.Run(name, func(t *testing.T) { modeltest.Load(t, name).Paths(t) })
		}
	}
	if !found {
		t.Errorf("%s has no model of this type", modeltest.Dir(""))
	}
}
