package deepseek_v2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/deepseek_v2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every deepseek_v2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "deepseek_v2-")
}
