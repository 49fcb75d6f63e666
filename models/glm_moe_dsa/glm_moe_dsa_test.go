package glm_moe_dsa_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/glm_moe_dsa"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every glm_moe_dsa checkpoint of testdata.
func TestReference(t *testing.T) {
	// Other positions are chosen where scores nearly tie. Beyond the budget the graph depends on the position.
	modeltest.Every(t, modeltest.Limits{Int8: 0.1, Stored: 0.04, KV8: 0.04, KV4: 0.6, Unrepeated: true}, "glm_moe_dsa-")
}
