package ollama_test

import (
	"fmt"
	"testing"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/ollama"
)

// TestManyNamelessLayers checks that naming layers takes linear time.
func TestManyNamelessLayers(t *testing.T) {
	const n = limits.ManifestBlobs
	layers := make([]manifest.Layer, n)
	for i := range layers {
		layers[i] = manifest.Layer{Kind: manifest.KindLicense, MediaType: ollama.MediaPrefix + "license"}
	}
	ollama.NameTexts(layers) // takes minutes if quadratic
	names := map[string]bool{}
	for _, l := range layers {
		names[l.Name] = true
	}
	if len(names) != n || layers[0].Name != "LICENSE" || layers[n-1].Name != fmt.Sprint("LICENSE.", n) {
		t.Errorf("%d names: %q, %q ... %q", len(names), layers[0].Name, layers[1].Name, layers[n-1].Name)
	}
}
