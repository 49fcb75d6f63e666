package seed_oss_test

import (
	"testing"

	"github.com/ingotml/ingot/models/modeltest"
	_ "github.com/ingotml/ingot/models/seed_oss"
)

// TestReference runs every seed_oss checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "seed_oss-")
}
