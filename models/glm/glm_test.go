package glm_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/glm"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "glm-")
}
