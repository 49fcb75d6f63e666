// Package converttest packs models of testdata for tests of what is done with an image.
package converttest

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/quantize/recipe"
)

// Pack packs a checkpoint of testdata as an image in a store of its own.
func Pack(t *testing.T, name string, more ...modelfile.Command) (*store.Store, *store.Entry) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	return PackFrom(t, filepath.Join(filepath.Dir(file), "..", "..", "testdata", "models", name), name, more...)
}

// PackFrom packs a folder as an image.
func PackFrom(t *testing.T, dir, name string, more ...modelfile.Command) (*store.Store, *store.Entry) {
	t.Helper()
	return PackAs(t, dir, name, recipe.Precision{}, more...)
}

// PackAs packs a folder with the given precision.
func PackAs(t *testing.T, dir, name string, precision recipe.Precision, more ...modelfile.Command) (*store.Store,
	*store.Entry) {
	t.Helper()
	store, entry, err := TryPack(t, dir, name, precision, more...)
	if err != nil {
		t.Fatal(err)
	}
	return store, entry
}

// TryPack packs a folder that may be refused.
func TryPack(t *testing.T, dir, name string, precision recipe.Precision, more ...modelfile.Command) (*store.Store,
	*store.Entry, error) {
	t.Helper()
	store, err := store.Open(t.TempDir())
	if err != nil {
		return nil, nil, err
	}
	id, err := manifest.ParseName(name)
	if err != nil {
		return nil, nil, err
	}
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: dir}}, more...)}
	if _, err := convert.Create(t.Context(), store, id, file, convert.Options{Precision: precision}); err != nil {
		return nil, nil, err
	}
	entry, err := store.Resolve(t.Context(), id)
	return store, entry, err
}
