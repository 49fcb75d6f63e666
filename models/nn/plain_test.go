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

// Activation functions equal their definitions in float64.
func TestActivations(t *testing.T) {
	tanh := func(x float64) float64 {
		return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
	}
	of := map[string]func(float64) float64{
		"silu":              func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		"gelu":              func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 },
		"gelu_pytorch_tanh": tanh,
		"relu":              func(x float64) float64 { return max(x, 0) },
		"relu2":             func(x float64) float64 { return max(x, 0) * max(x, 0) },
	}
	mlxtest.Do(t, func(e *mlx.Thread) {
		in := []float32{-9, -2.5, -1, -0.1, 0, 0.1, 0.7, 1, 3, 8}
		for name, want := range of {
			for i, y := range nn.ActivationOf(name)(mlx.FromSlice(e, in, 1, len(in))).Float32s() {
				x := float64(in[i])
				if d := math.Abs(float64(y) - want(x)); !(d <= 1e-5*max(1, math.Abs(x))) {
					t.Errorf("%s(%v) = %v, want %v", name, x, y, want(x))
				}
			}
		}
	})
}

// Rows get the vectors of their positions, and the last one beyond the table.
func TestPositions(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		table := mlx.FromSlice(e, []float32{10, 20, 30, 40}, 4, 1)
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"p.weight": {Array: mlx.Keep(table)}})
		defer w.Free()
		p := nn.NewPositions(w, "p", 4, 1)
		seq := cache.NewSequence([]cache.Kind{cache.Full})
		defer seq.Free()
		for _, c := range []struct {
			tokens  int
			want    []float32
			longest int
		}{{3, []float32{11, 21, 31}, 4}, {6, []float32{11, 21, 31, 41, 41, 41}, 1}} {
			b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, c.tokens), All: true})
			got := p.Add(b, mlx.Full(e, 1, mlx.Float32, c.tokens, 1)).Float32s()
			for i, w := range c.want {
				if got[i] != w {
					t.Errorf("%d rows: %v, want %v", c.tokens, got, c.want)
				}
			}
			if b.Longest != c.longest {
				t.Errorf("%d rows: the graph holds up to %d tokens, want %d", c.tokens, b.Longest, c.longest)
			}
		}
	})
}

// LayerNorms with offset weights and without weights equal their definition in float64.
func TestLayerNorms(t *testing.T) {
	const size, eps = 5, 1e-3
	in := []float32{1, -2, 0.5, 4, 7, -1, -1, 3, 0, 2}
	weight, bias := []float32{0.1, -0.2, 0, 0.3, 1}, []float32{1, 2, 3, 4, 5}
	mlxtest.Do(t, func(e *mlx.Thread) {
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{
			"n.weight": {Array: mlx.Keep(mlx.FromSlice(e, weight))}, "n.bias": {Array: mlx.Keep(mlx.FromSlice(e, bias))},
		})
		defer w.Free()
		x := mlx.FromSlice(e, in, 2, size)
		offset := nn.NewLayerNormPlusOne(w, "n", size, eps).Apply(x).Float32s()
		plain := nn.PlainLayerNorm(eps).Apply(x).Float32s()
		for row := 0; row < len(in); row += size {
			var mean, square float64
			for _, v := range in[row : row+size] {
				mean += float64(v) / size
			}
			for _, v := range in[row : row+size] {
				square += (float64(v) - mean) * (float64(v) - mean) / size
			}
			for i := range size {
				want := (float64(in[row+i]) - mean) / math.Sqrt(square+eps)
				if d := float64(plain[row+i]) - want; math.Abs(d) > 1e-5 {
					t.Errorf("plain: element %d is %v, want %v", row+i, plain[row+i], want)
				}
				want = want*(1+float64(weight[i])) + float64(bias[i])
				if d := float64(offset[row+i]) - want; math.Abs(d) > 1e-5 {
					t.Errorf("offset: element %d is %v, want %v", row+i, offset[row+i], want)
				}
			}
		}
	})
}

// The inverse of a rope undoes it.
func TestInverseRope(t *testing.T) {
	const rows, dim = 9, 8
	mlxtest.Do(t, func(e *mlx.Thread) {
		w := nn.NewWeights(mlx.Float32, nil)
		defer w.Free()
		r := config.Rope{Type: config.RopeDefault, Theta: 100, PartialFactor: 1}
		forth, back := nn.NewRope(e, w, r, dim), nn.NewRope(e, w, r, dim).Inverse(w)
		seq := cache.NewSequence([]cache.Kind{cache.Full})
		defer seq.Free()
		b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, rows), All: true})
		x := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, rows, 2, dim)
		rotated, _ := forth.Apply(b, x, x)
		again, _ := back.Apply(b, rotated, rotated)
		wantNearly(t, "there and back", again, x)
		other, _ := back.Apply(b, x, x)
		a, c := other.Float32s(), rotated.Float32s()
		for i := 2 * dim; i < len(a); i += dim {
			if a[i] == c[i] {
				t.Errorf("element %d is the same in both directions", i)
			}
		}
	})
}

// Clipped attention limits queries, keys and values.
func TestClip(t *testing.T) {
	const rows, heads, dim, hidden, limit = 4, 2, 4, 8, 0.5
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, map[string][]int{
			"a.q_proj.weight": {heads * dim, hidden}, "a.k_proj.weight": {heads * dim, hidden},
			"a.v_proj.weight": {heads * dim, hidden}, "a.o_proj.weight": {hidden, heads * dim},
		})
		defer w.Free()
		c := config.Common{Hidden: hidden, Heads: heads, KVHeads: heads, HeadDim: dim}
		attention := nn.NewAttention(w, "a", 0, c, nn.AttentionOptions{Clip: limit})
		seqs := []*cache.Sequence{cache.NewSequence([]cache.Kind{cache.Full}), cache.NewSequence([]cache.Kind{cache.Full})}
		defer seqs[0].Free()
		defer seqs[1].Free()
		batch := func(s *cache.Sequence) *nn.Batch {
			return nn.NewBatch(e, nn.Part{Seq: s, Tokens: make([]int32, rows), All: true})
		}
		x := mlx.RandomNormal(mlx.RandomKey(e, 99), mlx.Float32, rows, hidden)
		_, got := attention.AddApply(batch(seqs[0]), nil, x, nil)
		part := func(name string) *mlx.Array {
			y := mlx.MatMul(x, mlx.Transpose(v["a."+name+".weight"]))
			y = mlx.MinimumScalar(mlx.MaximumScalar(y, -limit), limit)
			return mlx.Reshape(y, rows, heads, dim)
		}
		want := nn.Attend(batch(seqs[1]), 0, part("q_proj"), part("k_proj"), part("v_proj"), nn.AttendOptions{Scale: 0.5})
		want = mlx.MatMul(mlx.Reshape(want, rows, -1), mlx.Transpose(v["a.o_proj.weight"]))
		wantNearly(t, "attention", got, want)
	})
}
