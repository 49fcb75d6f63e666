package gemma4_assistant_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	_ "github.com/ingotml/ingot/models/gemma4"
	_ "github.com/ingotml/ingot/models/gemma4_assistant"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
)

// pair is an assistant of testdata and its target.
type pair struct {
	name   string
	target models.Model
	draft  models.Draft
}

func load(t *testing.T, name string) pair {
	t.Helper()
	f, err := safetensors.Open(modeltest.Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	targetConfig, targetWeights := modeltest.Weights(t, f.Header().Metadata["target"])
	config, weights := modeltest.Weights(t, name)
	p := pair{name: name}
	mlxtest.Do(t, func(e *mlx.Thread) {
		if p.target, err = models.Build(e, targetConfig, targetWeights); err == nil {
			p.draft, err = models.BuildDraft(e, config, targetConfig, weights)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(modeltest.Dir(""))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "gemma4_assistant-") {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s has no assistant", modeltest.Dir(""))
	}
	return names
}

// A round of drafting gives the reference's tokens, logits and hidden states, alone and batched with other sequences,
// for any chunk size of the target's prefill.
func TestReference(t *testing.T) {
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			tokens := modeltest.Golden[int32](t, name, "tokens")
			t.Run("alone", func(t *testing.T) { p.check(t, len(tokens), tokens) })
			t.Run("in chunks of 7", func(t *testing.T) { p.check(t, 7, tokens) })
			t.Run("token by token", func(t *testing.T) { p.check(t, 1, tokens) })
			t.Run("beside others", func(t *testing.T) { p.check(t, 11, tokens, tokens[:5], tokens[9:40]) })
		})
	}
}

// check drafts for several texts in one batch. The first one has a golden.
func (p pair) check(t *testing.T, chunk int, texts ...[]int32) {
	t.Helper()
	drafted := append(modeltest.Golden[int32](t, p.name, "next"), modeltest.Golden[int32](t, p.name, "drafts")...)
	wantLogits := modeltest.Golden[float32](t, p.name, "logits")
	wantHidden := modeltest.Golden[float32](t, p.name, "hidden")
	var gotDrafted []int32
	var gotLogits, gotHidden []float32
	mlxtest.Do(t, func(e *mlx.Thread) {
		b := &models.DraftBatch{Batch: &nn.Batch{}}
		var states []*mlx.Array
		for i, text := range texts {
			seq := cache.NewSequence(p.target.Layers())
			defer seq.Free()
			var h *mlx.Array
			for part := range slices.Chunk(text, chunk) {
				h = p.target.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: part}))
			}
			states = append(states, h)
			b.Target = append(b.Target, seq)
			b.Segments = append(b.Segments, nn.Segment{Seq: cache.NewSequence(p.draft.Layers()), Row: i, Len: 1})
		}
		b.Hidden = mlx.Concatenate(0, states...)
		b.Tokens = mlx.ArgMax(p.target.Head(b.Hidden), -1, false)
		gotDrafted = append(gotDrafted, mlx.ToSlice[int32](mlx.AsType(b.Tokens, mlx.Int32))[0])
		for range len(drafted) - 1 {
			b.Vectors = p.target.Embed(b.Tokens)
			hidden, logits := p.draft.Step(b)
			b.Hidden, b.Tokens = hidden, mlx.ArgMax(logits, -1, false)
			gotHidden = append(gotHidden, hidden.Float32s()[:hidden.Dim(1)]...)
			gotLogits = append(gotLogits, logits.Float32s()[:logits.Dim(1)]...)
			gotDrafted = append(gotDrafted, mlx.ToSlice[int32](mlx.AsType(b.Tokens, mlx.Int32))[0])
		}
		if got := b.Target[0].Offset(); got != len(texts[0]) {
			t.Errorf("drafting moved the target to %d", got)
		}
	})
	if !slices.Equal(gotDrafted, drafted) {
		t.Errorf("drafted %v, want %v", gotDrafted, drafted)
	}
	wantClose(t, "logits", gotLogits, wantLogits)
	wantClose(t, "hidden states", gotHidden, wantHidden)
}

func wantClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d %s, want %d", len(got), what, len(want))
	}
	worst, squares := 0.0, 0.0
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) { // also true for NaN
			worst = d
		}
		squares += float64(want[i]) * float64(want[i])
	}
	off := worst / math.Sqrt(squares/float64(len(want)))
	t.Logf("%s: largest difference is %.2g of the root mean square", what, off)
	if !(off < modeltest.Tolerance) {
		t.Errorf("%s: largest difference is %v of the root mean square", what, off)
	}
}

// Ids outside the vocabulary would be read out of bounds.
func TestOrderingOutOfBounds(t *testing.T) {
	for _, name := range names(t) {
		if !strings.HasSuffix(name, "ordered") {
			continue
		}
		f, err := safetensors.Open(modeltest.Reference(name))
		if err != nil {
			t.Fatal(err)
		}
		target, _ := modeltest.Weights(t, f.Header().Metadata["target"])
		f.Close()
		config, _ := modeltest.Weights(t, name)
		for _, id := range []int64{-1, int64(config.Facts().Vocab)} {
			err := build(t, config, target, id)
			if err == nil || !strings.Contains(err.Error(), "token_ordering has ids") {
				t.Errorf("id %d: %v", id, err)
			}
		}
	}
}

// build builds an assistant of zeros with an ordering that contains id.
func build(t *testing.T, config, target arch.Model, id int64) (err error) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		tensors := map[string]*nn.Tensor{}
		for _, s := range config.Table().Specs {
			var shape []int
			for _, d := range s.Shape {
				shape = append(shape, int(d))
			}
			x := mlx.Zeros(e, mlx.Float32, shape...)
			if strings.HasSuffix(s.Name, "token_ordering") {
				ids := make([]int64, shape[0])
				ids[3] = id
				x = mlx.FromSlice(e, ids)
			}
			tensors[s.Name] = &nn.Tensor{Array: mlx.Keep(x)}
		}
		w := nn.NewWeights(mlx.Float32, tensors)
		defer w.Free()
		_, err = models.BuildDraft(e, config, target, w)
	})
	return err
}
