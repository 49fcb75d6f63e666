package mixtral_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/mixtral"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every mixtral checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "mixtral-")
}
