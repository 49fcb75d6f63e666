package llama_test

import (
	"testing"

	"github.com/ingotml/ingot/limits/runtest"
	_ "github.com/ingotml/ingot/models/llama"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every llama checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "llama-")
}

// TestDemo runs the checkpoint that other tests generate text with. It is larger than the others; in the short run it
// takes the paths of requests only.
func TestDemo(t *testing.T) {
	c := modeltest.Load(t, "demo")
	if runtest.Long() {
		c.Paths(t)
		return
	}
	c.Brief(t)
}
