package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

// The README shows the digests of the demo's images.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "testdata", "models", "demo")
	demo, err := os.ReadFile(filepath.Join(dir, "Modelfile"))
	if err != nil {
		t.Fatal(err)
	}
	models, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, file string
		precision  recipe.Precision
	}{
		{name: "demo", file: string(demo)},
		{name: "demo:int4", file: "FROM demo", precision: recipe.Precision{Type: quantize.Int4}},
	} {
		name, err := manifest.ParseName(step.name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := modelfile.Parse("Modelfile", []byte(step.file))
		if err != nil {
			t.Fatal(err)
		}
		made, err := convert.Create(t.Context(), models, name, file, convert.Options{Dir: dir, Precision: step.precision})
		if err != nil {
			t.Fatal(err)
		}
		if shown := made.Name.String() + "@" + string(made.Digest); !strings.Contains(string(readme), shown) {
			t.Errorf("README.md does not show %s", shown)
		}
	}
}
