package load

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/arch/table"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/manifest/blob"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/modeltest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/quantize"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/processor"
)

// output is the output of a model for a prompt.
type output struct {
	logits []float32 // of all tokens of the prompt
	greedy []int32
	bytes  int64 // of the rank's weights
}

// outputs loads a rank of a model, runs it and closes it.
func outputs(e *mlx.Thread, ranks *mlx.Group, f processor.Files, prompt []int32, o runtime.Options) (a output,
	err error) {
	m, err := OpenRank(context.Background(), e, ranks, f, f.Processor, o)
	if err != nil {
		return a, err
	}
	err = m.Do(context.Background(), func() error { a = m.output(prompt); return nil })
	return a, errors.Join(err, m.Close(nil))
}

func (m *Model) output(prompt []int32) (a output) {
	e := m.Thread
	a.bytes = m.Weights.Bytes()
	seq := cache.NewSequence(m.Kinds)
	defer seq.Free()
	tokens := prompt
	for range 12 {
		e.Scope(func() {
			all := m.Target.Head(m.Target.Forward(nn.NewBatch(e, nn.Part{Seq: seq, Tokens: tokens, All: true})))
			if a.logits == nil {
				a.logits = slices.Clone(all.Float32s())
			}
			best := mlx.ToSlice[uint32](mlx.ArgMax(all, -1, false))
			tokens = []int32{int32(best[len(best)-1])}
		})
		a.greedy = append(a.greedy, tokens[0])
	}
	return a
}

// Ranks that map parts of an image's tensors compute what one rank does, and have their share of the weights.
func TestRanks(t *testing.T) {
	prompt := modeltest.Golden[int32](t, "demo", "tokens")[:24]
	for _, c := range []struct {
		name      string
		precision recipe.Precision
		float32s  bool
	}{
		{"plain, float32", recipe.Precision{}, true},
		{"packed, float32", recipe.Precision{Type: quantize.Int4}, true},
		{"packed", recipe.Precision{Type: quantize.Int4}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, entry := converttest.PackAs(t, modeltest.Dir("demo"), "demo", c.precision)
			f, o := processor.Files{Store: s, Image: entry.Image}, runtime.Options{Float32: c.float32s}
			one, err := outputs(mlxtest.Open(t), nil, f, prompt, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{2, 4} {
				all := make([]output, size)
				err := mlxtest.EachRank(t, size, time.Minute, func(e *mlx.Thread, ranks *mlx.Group) (err error) {
					all[ranks.Rank()], err = outputs(e, ranks, f, prompt, o)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				for rank, a := range all {
					if !slices.Equal(a.logits, all[0].logits) || !slices.Equal(a.greedy, one.greedy) {
						t.Errorf("rank %d of %d continues %v, one rank %v", rank, size, a.greedy, one.greedy)
					}
					share := float64(a.bytes) / float64(one.bytes)
					t.Logf("rank %d of %d has %.2f of the weights", rank, size, share)
					if most := 1/float64(size) + 0.025*float64(size); share > most {
						t.Errorf("rank %d of %d has %.2f of the weights, want at most %.2f", rank, size, share, most)
					}
				}
				worst, deviation := difference(all[0].logits, one.logits)
				t.Logf("%d ranks: largest difference %.2g standard deviations", size, worst/deviation)
				if c.float32s && !(worst < 1e-5*deviation) {
					t.Errorf("%d ranks: logits differ by %.3g standard deviations", size, worst/deviation)
				}
			}
		})
	}
}

// Only rank 0 loads the vision tower: it encodes the pictures, and broadcasts their vectors.
func TestTowerOnRankZero(t *testing.T) {
	s, entry := converttest.PackAs(t, modeltest.Dir("qwen3_5-vision"), "vision", recipe.Precision{})
	f := processor.Files{Store: s, Image: entry.Image}
	config, err := f.Config()
	if err != nil {
		t.Fatal(err)
	}
	var tower int64
	for _, l := range entry.Image.Layers {
		if strings.HasPrefix(l.Name, "model.visual.") {
			b, err := blob.Open(s.BlobPath(l.Digest), l.Name)
			if err != nil {
				t.Fatal(err)
			}
			tower += b.Header.Size - b.Header.DataOffset
		}
	}
	if tower == 0 {
		t.Fatal("the image has no vision tower")
	}
	bytes, has := make([]int64, 2), make([]bool, 2)
	err = mlxtest.EachRank(t, 2, time.Minute, func(e *mlx.Thread, ranks *mlx.Group) error {
		m, err := OpenRank(context.Background(), e, ranks, f, f.Processor, runtime.Options{})
		if err != nil {
			return err
		}
		bytes[ranks.Rank()] = m.Weights.Bytes()
		for _, spec := range config.Table().Specs {
			if spec.Split.Kind == table.RankZero && m.Weights.Has(spec.Name) {
				has[ranks.Rank()] = true
			}
		}
		return m.Close(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if more := bytes[0] - bytes[1]; !has[0] || has[1] || more < tower {
		t.Errorf("rank 0 has a tower: %v, rank 1: %v; rank 0 has %d bytes more, the tower has %d", has[0], has[1], more,
			tower)
	}
}

func difference(got, want []float32) (worst, deviation float64) {
	var sum, squares float64
	for i, w := range want {
		worst = max(worst, math.Abs(float64(got[i])-float64(w)))
		sum, squares = sum+float64(w), squares+float64(w)*float64(w)
	}
	n := float64(len(want))
	return worst, math.Sqrt(squares/n - sum/n*sum/n)
}
