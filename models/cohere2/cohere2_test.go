package cohere2_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/cohere2"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every cohere2 checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "cohere2-")
}
