package verify

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

func TestCompareWithReference(t *testing.T) {
	l := loadModel(t, "llama-default")
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	c, greedy, err := Compare(t.Context(), l, ref)
	if err != nil {
		t.Fatal(err)
	}
	if c.MaxAbs > modeltest.Tolerance*c.Scale || c.MeanKL > 1e-6 || c.Top1 != 1 || greedy == nil || !*greedy ||
		c.Tokens != len(ref.Tokens) {
		t.Errorf("%+v, greedy %v", c, greedy)
	}
	// Logits of the last tokens alone.
	last := *ref
	last.Logits = ref.Logits[(len(ref.Tokens)-2)*ref.Vocab:]
	if c, _, err = Compare(t.Context(), l, &last); err != nil || c.Tokens != 2 || c.MaxAbs > modeltest.Tolerance*c.Scale {
		t.Errorf("logits of two tokens: %+v, %v", c, err)
	}
	// Another model's reference does not match.
	other, err := quality.ReadReference(modeltest.Reference("llama-tied"))
	if err != nil {
		t.Fatal(err)
	}
	if c, greedy, err = Compare(t.Context(), l, other); err != nil || c.MeanKL < 1e-3 || *greedy {
		t.Errorf("another model's reference: %+v, %v", c, err)
	}
	ref.Vocab, ref.Logits = 2, ref.Logits[:2*len(ref.Tokens)]
	if _, _, err = Compare(t.Context(), l, ref); !errors.Is(err, quality.ErrReference) {
		t.Errorf("a reference of another vocabulary: %v", err)
	}
}

// Weights in their own type stay mapped, and the logits are close to the reference.
func TestLoadMapped(t *testing.T) {
	thread := mlxtest.Open(t)
	if thread.Info().GPU {
		t.Skip("on a GPU weights are not mapped host memory")
	}
	store, entry := converttest.Pack(t, "llama-default")
	l, err := batch.Open(t.Context(), thread, store, entry, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mapped int64
	mlxtest.Do(t, func(e *mlx.Thread) { mapped = e.Memory().Mapped })
	if mapped == 0 {
		t.Error("no weights are mapped")
	}
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := Compare(t.Context(), l, ref); err != nil || c.MeanKL > 1e-2 {
		t.Errorf("in bfloat16: %+v, %v", c, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	mlxtest.Do(t, func(e *mlx.Thread) { mapped = e.Memory().Mapped })
	if mapped != 0 {
		t.Errorf("%d bytes are still mapped after Close", mapped)
	}
}

func TestCheckImage(t *testing.T) {
	store, entry := converttest.Pack(t, "llama-default")
	s, err := Image(t.Context(), store, entry)
	if err != nil || s.Tensors == 0 || s.Blobs <= s.Tensors || s.Bytes == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	norm, ok := entry.Image.Find(manifest.KindTensor, "model.norm.weight")
	if !ok {
		t.Fatal("no model.norm.weight")
	}
	t.Run("tensor gone from the manifest", func(t *testing.T) {
		less := *entry
		less.Image.Layers = slices.DeleteFunc(slices.Clone(entry.Image.Layers),
			func(l manifest.Layer) bool { return l.Name == norm.Name })
		_, err := Image(t.Context(), store, &less)
		if err == nil || !strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("tensor under another name", func(t *testing.T) {
		swapped := *entry
		swapped.Image.Layers = slices.Clone(entry.Image.Layers)
		for i, l := range swapped.Image.Layers {
			if l.Name == norm.Name {
				swapped.Image.Layers[i].Name = "model.layers.0.input_layernorm.weight"
			}
		}
		if _, err := Image(t.Context(), store, &swapped); !errors.Is(err, runtime.ErrImage) {
			t.Errorf("got %v", err)
		}
	})
	path := store.BlobPath(norm.Digest)
	t.Run("damaged blob", func(t *testing.T) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		runtimetest.Rewrite(t, path, b)
		_, err = Image(t.Context(), store, entry)
		if !errors.Is(err, runtime.ErrImage) || !strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("short blob", func(t *testing.T) {
		runtimetest.Rewrite(t, path, []byte("x"))
		if _, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{}); !errors.Is(err,
			runtime.ErrImage) ||
			!strings.Contains(err.Error(), norm.Name) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("missing blob", func(t *testing.T) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := Image(t.Context(), store, entry); !errors.Is(err, manifest.ErrBlobMissing) {
			t.Errorf("got %v", err)
		}
	})
}

func TestProbe(t *testing.T) {
	l := loadModel(t, "llama-default")
	if n, err := Probe(t.Context(), l.Model()); err != nil || n != 8 {
		t.Errorf("%d tokens, %v", n, err)
	}
}

// Tokens that generation_config.json suppresses are never generated. A comparison ignores them.
func TestSuppressedTokens(t *testing.T) {
	ref, err := quality.ReadReference(modeltest.Reference("llama-default"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(modeltest.Dir("llama-default"))); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "generation_config.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(fmt.Sprintf(`{"suppress_tokens": [%d, 999999, %d]}`, ref.Greedy[0], ref.Greedy[2]))
	store, entry := converttest.PackFrom(t, dir, "suppressed")
	l, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sampling := l.Processor().Defaults().Sampling
	sampling.Temperature = 0
	ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: ref.Tokens, MaxTokens: 16,
		Sampling:  sampling,
		IgnoreEOS: true})
	if err != nil || len(ids) != 16 || slices.Contains(ids, ref.Greedy[0]) || slices.Contains(ids, ref.Greedy[2]) {
		t.Errorf("ids %v, %v; want none of %d and %d", ids, err, ref.Greedy[0], ref.Greedy[2])
	}
	if _, greedy, err := Compare(t.Context(), l, ref); err != nil || greedy == nil || !*greedy {
		t.Errorf("compared: greedy %v, %v", greedy, err)
	}

}

// Prompts with pictures have the same logits and greedy continuation as in transformers. The JPEG decoder differs from
// libjpeg in a few pixels.
func TestComparePictures(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	for name, files := range runtimetest.PictureCases {
		ref := runtimetest.ReadReference(t, "qwen3_5-vision-"+name)
		bound, kl := modeltest.Tolerance, 1e-6
		if name == "photo" {
			bound, kl = 0.05, 1e-4
		}
		c, greedy, err := Compare(t.Context(), l, ref, runtimetest.Pictures(t, files...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Logf("%s: largest difference %.2g deviations, mean KL %.2g", name, c.MaxAbs/c.Scale, c.MeanKL)
		if c.MaxAbs > bound*c.Scale || c.MeanKL > kl || c.Top1 != 1 || !*greedy {
			t.Errorf("%s: %+v, greedy %v", name, c, *greedy)
		}
	}
	ref := runtimetest.ReadReference(t, "qwen3_5-vision-fits")
	_, _, err := Compare(t.Context(), l, ref, runtimetest.Pictures(t, "shapes.png", "wide.png")...)
	if !errors.Is(err, runtime.ErrPictures) || !strings.Contains(err.Error(), "places for 1 pictures, 2 were given") {
		t.Errorf("a picture too many: %v", err)
	}
	if _, _, err = Compare(t.Context(), l, ref, runtimetest.Pictures(t, "wide.png")...); !errors.Is(err,
		runtime.ErrPictures) ||
		!strings.Contains(err.Error(), "picture 1 makes 7 tokens, the prompt has 6") {
		t.Errorf("another size: %v", err)
	}
	short := *ref
	at := slices.Index(ref.Tokens, runtimetest.ImagePad)
	short.Tokens = append(slices.Clone(ref.Tokens[:at+1]), ref.Tokens[at+6:]...)
	if _, _, err = Compare(t.Context(), l, &short, runtimetest.Pictures(t, "shapes.png")...); !errors.Is(err,
		quality.ErrReference) {
		t.Errorf("a reference that is not expanded: %v", err)
	}
}

// Probe detects damaged weights of a vision tower without a picture.
func TestProbeTower(t *testing.T) {
	l := loadModel(t, "qwen3_5-vision")
	if n, err := Probe(t.Context(), l.Model()); err != nil || n != 8 {
		t.Errorf("%d tokens, %v", n, err)
	}
	l.Model().Processor.Vision.Processor.Mean[0] = math.NaN()
	if _, err := Probe(t.Context(), l.Model()); !errors.Is(err, runtime.ErrImage) ||
		!strings.Contains(err.Error(), "vectors of a picture") {
		t.Errorf("pixels that are no numbers: %v", err)
	}
}

// loadModel packs and loads a model. The test fails if arrays are left after the model is closed.
func loadModel(t *testing.T, name string, more ...modelfile.Command) *batch.Engine {
	t.Helper()
	thread := mlxtest.Open(t)
	store, entry := converttest.Pack(t, name, more...)
	before := runtimetest.Arrays(t)
	l, err := batch.Open(t.Context(), thread, store, entry, runtime.Options{Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if after := runtimetest.Arrays(t); after != before {
			t.Errorf("%d arrays live after Close, %d before Load", after, before)
		}
	})
	return l
}
