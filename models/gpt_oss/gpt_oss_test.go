package gpt_oss_test

import (
	"testing"

	_ "github.com/ingotml/ingot/models/gpt_oss"
	"github.com/ingotml/ingot/models/modeltest"
)

// TestReference runs every gpt_oss checkpoint of testdata.
func TestReference(t *testing.T) {
	modeltest.Every(t, modeltest.Limits{}, "gpt_oss-")
}
