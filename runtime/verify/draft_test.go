package verify

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/batch"
	"github.com/ingotml/ingot/runtime/quality"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// A model runs with every kind of draft as it does without: an assistant that reads the target's KV cache, the target's
// own head, and another model.
func TestDraft(t *testing.T) {
	for _, test := range []struct{ name, draft string }{
		{"gemma4-e2b", "gemma4_assistant-ordered"},
		{"gemma4-12b", "gemma4_assistant-dense"},
		{"qwen3_5-published", ""},
		{"llama-default", "llama-mha"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var more []modelfile.Command
			if test.draft != "" {
				more = append(more, modelfile.Command{Name: modelfile.Draft, Value: modeltest.Dir(test.draft)})
			}
			store, entry := converttest.Pack(t, test.name, more...)
			if _, err := Image(t.Context(), store, entry); err != nil {
				t.Error(err)
			}
			before := runtimetest.Arrays(t)
			l, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{Float32: true})
			if err != nil {
				t.Fatal(err)
			}
			if n, err := ProbeDraft(t.Context(), l.Model(), store, entry, runtime.Options{Float32: true}); err != nil || n != 3 {
				t.Errorf("%d drafts, %v", n, err)
			}
			ref, err := quality.ReadReference(modeltest.Reference(test.name))
			if err != nil {
				t.Fatal(err)
			}
			if c, greedy, err := Compare(t.Context(), l, ref); err != nil || c.MaxAbs > modeltest.Tolerance*c.Scale || !*greedy {
				t.Errorf("%+v, %v", c, err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if after := runtimetest.Arrays(t); after != before {
				t.Errorf("%d arrays live after Close, %d before Load", after, before)
			}
		})
	}
}

// Targets and drafts may have different quantization formats.
func TestDraftFormats(t *testing.T) {
	formats := []quantize.Type{quantize.Int4, quantize.Int8, quantize.MXFP4, quantize.MXFP8, quantize.NVFP4,
		quantize.ToF16}
	for i, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			precision := recipe.Precision{Type: formats[(i+1)%len(formats)], Draft: format}
			store, entry := converttest.PackAs(t, modeltest.Dir("gemma4-e2b"), "pair", precision,
				modelfile.Command{Name: modelfile.Draft, Value: modeltest.Dir("gemma4_assistant-ordered")})
			l, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if n, err := ProbeDraft(t.Context(), l.Model(), store, entry, runtime.Options{}); err != nil || n != 3 {
				t.Errorf("%d drafts, %v", n, err)
			}
		})
	}
}

func TestNoDraft(t *testing.T) {
	store, entry := converttest.Pack(t, "llama-default")
	l, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n, err := ProbeDraft(t.Context(), l.Model(), store, entry, runtime.Options{}); n != 0 || err != nil {
		t.Errorf("%d drafts, %v", n, err)
	}
}

func TestDraftDamaged(t *testing.T) {
	const draftFile = "draft/config.json"
	store, entry := converttest.Pack(t, "gemma4-12b", modelfile.Command{Name: modelfile.Draft,
		Value: modeltest.Dir("gemma4_assistant-dense")})
	// check returns the error of CheckImage for the image without a layer.
	check := func(name string) error {
		less := *entry
		less.Image.Layers = slices.DeleteFunc(slices.Clone(entry.Image.Layers),
			func(l manifest.Layer) bool { return l.Name == name })
		_, err := Image(t.Context(), store, &less)
		return err
	}
	if err := check(draftFile); !errors.Is(err, runtime.ErrImage) || !strings.Contains(err.Error(), draftFile) {
		t.Errorf("without its configuration: %v", err)
	}
	if err := check("draft.post_projection.weight"); !errors.Is(err, table.ErrMismatch) ||
		!strings.Contains(err.Error(), "post_projection.weight") {
		t.Errorf("without a tensor: %v", err)
	}

	// Every element of a norm becomes NaN.
	norm, ok := entry.Image.Find(manifest.KindTensor, "draft.model.norm.weight")
	if !ok {
		t.Fatal("no draft.model.norm.weight")
	}
	b, err := os.ReadFile(store.BlobPath(norm.Digest))
	if err != nil {
		t.Fatal(err)
	}
	for i := len(b) - 32; i < len(b); i++ {
		b[i] = 0xff
	}
	d, _, err := store.PutBytes(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for i, layer := range entry.Image.Layers {
		if layer.Digest == norm.Digest {
			entry.Image.Layers[i].Digest = d
		}
	}
	l, err := batch.Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Probe(t.Context(), l.Model()); err != nil {
		t.Errorf("the model itself: %v", err)
	}
	if _, err := ProbeDraft(t.Context(), l.Model(), store, entry, runtime.Options{}); !errors.Is(err, runtime.ErrImage) ||
		!strings.Contains(err.Error(), "in step 0 is NaN") {
		t.Errorf("a draft of NaN: %v", err)
	}
}
