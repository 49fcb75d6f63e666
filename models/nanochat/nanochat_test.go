package nanochat_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/nanochat"
)

// TestReference runs every nanochat checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "nanochat-")
}
