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

// A round of drafting gives the reference's tokens, scores and hidden states, alone and beside another sequence, however the
// target read the text.
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

// check drafts for texts at once, of which the first has a golden.
func (p pair) check(t *testing.T, chunk int, texts ...[]int32) {
	t.Helper()
	said := append(modeltest.Golden[int32](t, p.name, "next"), modeltest.Golden[int32](t, p.name, "drafts")...)
	wantScores, wantHidden := modeltest.Golden[float32](t, p.name, "logits"), modeltest.Golden[float32](t, p.name, "hidden")
	var gotSaid []int32
	var gotScores, gotHidden []float32
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
		gotSaid = append(gotSaid, mlx.ToSlice[int32](mlx.AsType(b.Tokens, mlx.Int32))[0])
		for range len(said) - 1 {
			b.Vectors = p.target.Embed(b.Tokens)
			hidden, scores := p.draft.Step(b)
			b.Hidden, b.Tokens = hidden, mlx.ArgMax(scores, -1, false)
			gotHidden = append(gotHidden, hidden.Float32s()[:hidden.Dim(1)]...)
			gotScores = append(gotScores, scores.Float32s()[:scores.Dim(1)]...)
			gotSaid = append(gotSaid, mlx.ToSlice[int32](mlx.AsType(b.Tokens, mlx.Int32))[0])
		}
		if got := b.Target[0].Offset(); got != len(texts[0]) {
			t.Errorf("drafting left the target at %d", got)
		}
	})
	if !slices.Equal(gotSaid, said) {
		t.Errorf("said %v, want %v", gotSaid, said)
	}
	wantClose(t, "scores", gotScores, wantScores)
	wantClose(t, "hidden states", gotHidden, wantHidden)
}

func wantClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d %s, want %d", len(got), what, len(want))
	}
	worst, squares := 0.0, 0.0
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= worst) { // NaN counts
			worst = d
		}
		squares += float64(want[i]) * float64(want[i])
	}
	off := worst / math.Sqrt(squares/float64(len(want)))
	t.Logf("%s are off by at most %.2g of their size", what, off)
	if !(off < modeltest.Tolerance) {
		t.Errorf("%s are off by %v of their size", what, off)
	}
}

// An ordering that points outside the vocabulary would be read from somewhere in memory.
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
			if err == nil || !strings.Contains(err.Error(), "token_ordering holds ids") {
				t.Errorf("id %d: %v", id, err)
			}
		}
	}
}

// build makes an assistant of zeros, with an ordering of which one id is as given.
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
