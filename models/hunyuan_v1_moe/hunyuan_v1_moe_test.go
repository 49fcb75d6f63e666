package hunyuan_v1_moe_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/hunyuan_v1_moe"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every hunyuan_v1_moe checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "hunyuan_v1_moe-")
}
