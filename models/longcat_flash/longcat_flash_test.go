package longcat_flash_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/longcat_flash"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every longcat_flash checkpoint of testdata.
func TestReference(t *testing.T) {
	// A CPU does not record the operations that find experts without weights.
	modeltest.Every(t, modeltest.Limits{Unrepeated: true}, "longcat_flash-")
}
