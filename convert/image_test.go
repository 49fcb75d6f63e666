package convert

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
)

func parsed(t *testing.T, text string) *modelfile.File {
	t.Helper()
	f, err := modelfile.Parse("Modelfile", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// An image made from a model in the store reuses its blobs, and adds the Modelfile's content.
func TestFromImage(t *testing.T) {
	c := finiteWeights(tiny(t, wideConfig, 1))
	c.files["generation_config.json"] = `{"temperature": 0.7, "top_k": 20}`
	c.files["LICENSE"] = "terms"
	store := openStore(t)
	base := mustCreate(t, store, "base", from(c.write(t, t.TempDir())), Options{})
	same := mustCreate(t, store, "same", parsed(t, "FROM base"), Options{})
	if same.Digest != base.Digest || same.Reused != same.Bytes {
		t.Errorf("digest %s, want %s; %d of %d bytes were there", same.Digest, base.Digest, same.Reused, same.Bytes)
	}
	more := mustCreate(t, store, "more", parsed(t, "FROM base:latest\nPARAMETER top_k 5\nLICENSE more"), Options{})
	img := mustResolve(t, store, "more").Image
	if got := readLayer(t, store, img, manifest.KindParams, settings.ParamsName); got != `{"temperature":0.7,"top_k":5}` {
		t.Errorf("parameters %s", got)
	}
	if got := readLayer(t, store, img, manifest.KindLicense, "LICENSE.2"); got != "more" {
		t.Errorf("licence %s", got)
	}
	if changed := more.Bytes - more.Reused; changed <= 0 || changed > 200 {
		t.Errorf("%d bytes are new", changed)
	}
}

// Quantizing a model in the store gives the same image as quantizing its checkpoint.
func TestQuantizeImage(t *testing.T) {
	dir := finiteWeights(tiny(t, wideConfig, 1)).write(t, t.TempDir())
	store := openStore(t)
	options := Options{Precision: recipe.Precision{Type: quantize.Int4}}
	want := mustCreate(t, openStore(t), "x", from(dir), options)
	mustCreate(t, store, "base", from(dir), Options{})
	got := mustCreate(t, store, "q", parsed(t, "FROM base"), options)
	if got.Digest != want.Digest {
		t.Errorf("digest %s, want %s", got.Digest, want.Digest)
	}
	again := mustCreate(t, store, "q2", parsed(t, "FROM q"), Options{})
	if again.Digest != want.Digest || again.Reused != again.Bytes {
		t.Errorf("from the quantized image: digest %s, want %s", again.Digest, want.Digest)
	}
	if r := mustCreate(t, store, "q3", parsed(t, "FROM q"), options); r.Digest != want.Digest {
		t.Errorf("to the type that it has: digest %s, want %s", r.Digest, want.Digest)
	}
	_, err := Create(t.Context(), store, modelName(t, "q4"), parsed(t, "FROM q"),
		Options{Precision: recipe.Precision{Type: quantize.MXFP4}})
	if !errors.Is(err, source.ErrSource) || !strings.Contains(err.Error(), "it is already int") ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("quantized twice: error %v", err)
	}
}

// A dry run writes nothing and needs no store.
func TestDryRunNeedsNoStore(t *testing.T) {
	none := func() (*store.Store, error) { return nil, os.ErrNotExist }
	if _, err := DryRun(t.Context(), none, from(tiny(t, tinyConfig, 1).write(t, t.TempDir())), Options{}); err != nil {
		t.Error(err)
	}
	_, err := DryRun(t.Context(), none, parsed(t, "FROM base"), Options{})
	if err == nil ||
		!strings.HasPrefix(err.Error(),
			"Modelfile:1:1: there is no such folder, and no model base:latest in the store; pull it first") {
		t.Errorf("error %v", err)
	}
}
