package glm4_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/glm4"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm4 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "glm4-")
}
