// Package modeltest checks models against the reference implementation's scores, on the checkpoints of testdata.
//
// It computes in float32 from the stored weights, as the goldens were (testdata/gen/README.md).
package modeltest

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/safetensors"
)

// Tolerance is the largest difference of a score from the reference, in standard deviations of its scores.
const Tolerance = 2e-3

// Checkpoint is a model of testdata, loaded, with what the reference computed of it.
type Checkpoint struct {
	Model  models.Model
	Tokens []int32
	Logits []float32 // [len(Tokens), Vocab]
	Vocab  int
	Greedy []int32
	Scale  float64 // standard deviation of Logits
}

// Dir is a folder of testdata/models.
func Dir(name string) string { return filepath.Join(testdata(), "models", name) }

// Reference is a file of testdata/reference.
func Reference(name string) string {
	return filepath.Join(testdata(), "reference", name+".safetensors")
}

func testdata() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata")
}

// Load reads a checkpoint and its reference; the model is freed when the test ends.
func Load(t *testing.T, name string) *Checkpoint {
	t.Helper()
	config, tensors := read(t, name)
	c := &Checkpoint{Vocab: int(config.Facts().Vocab)}
	c.reference(t, name)
	weights := hold(t, tensors)
	var err error
	mlxtest.Do(t, func(e *mlx.Thread) { c.Model, err = models.Build(e, config, weights) })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Checkpoint) reference(t *testing.T, name string) {
	t.Helper()
	f, err := safetensors.Open(Reference(name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	words := func(name string) []uint32 {
		tensor, ok := f.Lookup(name)
		if !ok {
			t.Fatalf("%s has no %s", f.Path(), name)
		}
		raw, err := io.ReadAll(f.Reader(tensor))
		if err != nil {
			t.Fatal(err)
		}
		out := make([]uint32, len(raw)/4)
		for i := range out {
			out[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
		return out
	}
	for _, w := range words("tokens") {
		c.Tokens = append(c.Tokens, int32(w))
	}
	for _, w := range words("greedy") {
		c.Greedy = append(c.Greedy, int32(w))
	}
	var sum, squares float64
	for _, w := range words("logits") {
		v := math.Float32frombits(w)
		c.Logits = append(c.Logits, v)
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(c.Logits))
	c.Scale = math.Sqrt(squares/n - sum/n*sum/n)
	if len(c.Logits) != len(c.Tokens)*c.Vocab {
		t.Fatalf("%s: %d scores for %d tokens", f.Path(), len(c.Logits), len(c.Tokens))
	}
}

// Paths checks that the reference's scores and greedy continuation come out whatever way the tokens take: the whole
// prompt at once, token by token, in chunks of 7, and packed beside two other sequences.
func (c *Checkpoint) Paths(t *testing.T) {
	t.Run("whole", func(t *testing.T) { c.check(t, c.chunked(t, len(c.Tokens), nil)) })
	t.Run("token by token", func(t *testing.T) { c.check(t, c.chunked(t, 1, nil)) })
	t.Run("chunks of 7", func(t *testing.T) { c.check(t, c.chunked(t, 7, nil)) })
	t.Run("packed", func(t *testing.T) {
		before, after := c.Tokens[3:17], c.Tokens[20:29]
		c.check(t, c.chunked(t, 11, [][]int32{before, after}))
	})
	t.Run("greedy", func(t *testing.T) { c.checkGreedy(t) })
}

// chunked gives the scores of all tokens, taken n at a time; others run in the same batches, one before and one after,
// each in pieces of their own.
func (c *Checkpoint) chunked(t *testing.T, n int, others [][]int32) []float32 {
	t.Helper()
	var scores []float32
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(c.Model.Layers())
		defer seq.Free()
		var side []*cache.Sequence
		for range others {
			s := cache.NewSequence(c.Model.Layers())
			defer s.Free()
			side = append(side, s)
		}
		for start := 0; start < len(c.Tokens); start += n {
			chunk := c.Tokens[start:min(start+n, len(c.Tokens))]
			parts := []nn.Part{{Seq: seq, Tokens: chunk, All: true}}
			for i := range others {
				take := min(3+2*i, len(others[i]))
				if take == 0 {
					continue
				}
				p := nn.Part{Seq: side[i], Tokens: others[i][:take]}
				others[i] = others[i][take:]
				if i == 0 {
					parts = append([]nn.Part{p}, parts...)
				} else {
					parts = append(parts, p)
				}
			}
			e.Scope(func() {
				all := c.Model.Head(c.Model.Forward(nn.NewBatch(e, parts...))).Float32s()
				first := 0
				if parts[0].Seq != seq {
					first = 1 // the other sequence wants one row
				}
				scores = append(scores, all[first*c.Vocab:][:len(chunk)*c.Vocab]...)
			})
		}
	})
	return scores
}

func (c *Checkpoint) check(t *testing.T, scores []float32) {
	t.Helper()
	if len(scores) != len(c.Logits) {
		t.Fatalf("%d scores, want %d", len(scores), len(c.Logits))
	}
	worst, at := 0.0, 0
	for i, want := range c.Logits {
		d := math.Abs(float64(scores[i]) - float64(want))
		if !(d <= worst) { // NaN counts
			worst, at = d, i
		}
	}
	t.Logf("largest difference %.2g standard deviations", worst/c.Scale)
	if !(worst < Tolerance*c.Scale) {
		t.Errorf("score %d at position %d is %v, want %v: %.3g standard deviations off",
			at%c.Vocab, at/c.Vocab, scores[at], c.Logits[at], worst/c.Scale)
	}
}

func (c *Checkpoint) checkGreedy(t *testing.T) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence(c.Model.Layers())
		defer seq.Free()
		next := c.Tokens
		for i, want := range c.Greedy {
			var got int
			e.Scope(func() {
				hidden := c.Model.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: next}))
				got = mlx.ArgMax(c.Model.Head(hidden), -1, false).Int()
			})
			if got != int(want) {
				t.Fatalf("greedy token %d is %d, want %d", i, got, want)
			}
			next = []int32{want}
		}
	})
}
