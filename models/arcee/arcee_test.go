package arcee_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/arcee"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every arcee checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "arcee-")
}
