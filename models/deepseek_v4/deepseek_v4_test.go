package deepseek_v4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/deepseek_v4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every deepseek_v4 checkpoint of testdata.
func TestReference(t *testing.T) {
	// Other entries are chosen where scores nearly tie. Which entries there are depends on the position.
	modeltest.Every(t, modeltest.Limits{Int8: 0.1, Stored: 0.04, KV8: 0.04, KV4: 0.6, Unrepeated: true}, "deepseek_v4-")
}
