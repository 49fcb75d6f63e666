// Package runtimetest has what the tests of the runtime share: requests that run to their end, pictures
// and references of testdata.
package runtimetest

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/safetensors"
)

// Arrays returns the number of live arrays of the engine.
func Arrays(t *testing.T) (n int64) {
	t.Helper()
	err := mlxtest.Open(t).Do(context.Background(), func() error { n = mlxtest.Open(t).Memory().Arrays; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Collect runs a request to its end.
func Collect(ctx context.Context, e runtime.Engine, r runtime.Request) (ids []int32, text string, last runtime.Event,
	err error) {
	for ev, err := range e.Generate(ctx, r) {
		if err != nil {
			return ids, text, ev, err
		}
		ids, text, last = append(ids, ev.IDs...), text+ev.Text, ev
	}
	return ids, text, last, nil
}

// Rewrite replaces a read-only blob, as a failing disk would.
func Rewrite(t *testing.T, path string, b []byte) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(other, b, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
}

// NoArrays checks at the end of the test that as many arrays are live as now. No other model may be open: it frees
// arrays when it has been idle for a while.
func NoArrays(t *testing.T) {
	t.Helper()
	before := Arrays(t)
	t.Cleanup(func() {
		if after := Arrays(t); after != before {
			t.Errorf("%d arrays live at the end, %d before", after, before)
		}
	})
}

// Pictures returns pictures of testdata/pictures, in order.
func Pictures(t *testing.T, names ...string) (pictures []runtime.Picture) {
	t.Helper()
	for i, name := range names {
		b, err := os.ReadFile(filepath.Join(modeltest.Dir(""), "..", "pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, runtime.Picture{ID: i, Data: b})
	}
	return pictures
}

// ReadReference reads the reference of a model of testdata.
func ReadReference(t *testing.T, name string) *quality.Reference {
	t.Helper()
	ref, err := quality.ReadReference(modeltest.Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// PictureCases lists the references of testdata/models/qwen3_5-vision with pictures, and the pictures of each.
var PictureCases = map[string][]string{
	"fits": {"shapes.png"}, "resized": {"wide.png"}, "photo": {"photo.jpg"},
	"several": {"shapes.png", "wide.png", "shapes.png"},
}

// VisionStart and the others are token ids of testdata/models/qwen3_5-vision.
const VisionStart, VisionEnd, ImagePad, VideoPad = 380, 381, 382, 383

// Elements returns the elements of a tensor, which has the type T.
func Elements[T int32 | float32](f *safetensors.File, t safetensors.Tensor) ([]T, error) {
	all := make([]T, t.Size()/4)
	return all, binary.Read(f.Reader(t), binary.LittleEndian, all)
}
