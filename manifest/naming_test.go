package manifest

import (
	"fmt"
	"testing"

	"github.com/ingotml/ingot/limits"
)

// TestManyNamelessLayers checks that naming layers takes linear time.
func TestManyNamelessLayers(t *testing.T) {
	const n = limits.ManifestBlobs
	layers := make([]Layer, n)
	for i := range layers {
		layers[i] = Layer{Kind: KindLicense, MediaType: ollamaPrefix + "license"}
	}
	nameTexts(layers) // takes minutes if quadratic
	names := map[string]bool{}
	for _, l := range layers {
		names[l.Name] = true
	}
	if len(names) != n || layers[0].Name != "LICENSE" || layers[n-1].Name != fmt.Sprint("LICENSE.", n) {
		t.Errorf("%d names: %q, %q ... %q", len(names), layers[0].Name, layers[1].Name, layers[n-1].Name)
	}
}
