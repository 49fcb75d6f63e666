package cohere_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/cohere"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every cohere checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "cohere-")
}
