package hunyuan_v1_dense_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/hunyuan_v1_dense"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every hunyuan_v1_dense checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "hunyuan_v1_dense-")
}
