package nn_test

import (
	"math"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// StoredAttention over a layer with the same weights equals that layer's attention.
func TestStoredAttention(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		c := config.Common{Hidden: 16, Heads: 4, KVHeads: 2, HeadDim: 8, NormEps: 1e-6}
		tensors := map[string]*nn.Tensor{}
		for i, of := range []struct {
			name  string
			shape []int
		}{
			{"q_proj", []int{32, 16}}, {"k_proj", []int{16, 16}}, {"v_proj", []int{16, 16}}, {"o_proj", []int{16, 32}},
			{"q_norm", []int{8}}, {"k_norm", []int{8}},
		} {
			x := mlx.RandomNormal(mlx.RandomKey(e, uint64(i)), mlx.Float32, of.shape...)
			tensors["a."+of.name+".weight"] = &nn.Tensor{Array: mlx.Keep(x)}
		}
		w := nn.NewWeights(mlx.Float32, tensors)
		defer w.Free()
		rope := nn.NewRope(e, w, config.Rope{Type: config.RopeDefault, Theta: 100}, 8)
		whole := nn.NewAttention(w, "a", 0, c, nn.AttentionOptions{
			Rope: rope, Window: 3,
			QNorm: nn.NewRMSNorm(w, "a.q_norm", 8, c.NormEps), KNorm: nn.NewRMSNorm(w, "a.k_norm", 8, c.NormEps),
		})
		stored := nn.NewStoredAttention(w, "a", 0, c, 8, nn.AttendOptions{Scale: 1 / math.Sqrt(8), Window: 3, Rope: rope})
		if err := w.Err(); err != nil {
			t.Error(err)
			return
		}
		seq := cache.NewSequence([]cache.Kind{cache.Rotating(3)})
		defer seq.Free()
		b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, 7), All: true})
		x := mlx.RandomNormal(mlx.RandomKey(e, 9), mlx.Float32, 7, 16)
		norm := nn.PlainRMSNorm(1e-6)
		_, want := whole.AddApply(b, norm, x, nil)
		got := stored.Apply(b, norm, x)
		if d := mlx.Max(mlx.Abs(mlx.Subtract(got, want)), false).Float32s()[0]; !(d < 1e-5) {
			t.Errorf("largest difference %v", d)
		}
	})
}
