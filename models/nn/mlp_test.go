package nn_test

import (
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// random returns random weights of the given shapes, and their values.
func random(e *mlx.Thread, shapes map[string][]int) (*nn.Weights, map[string]*mlx.Array) {
	tensors, values := map[string]*nn.Tensor{}, map[string]*mlx.Array{}
	seed := uint64(0)
	for name, shape := range shapes {
		seed++
		values[name] = mlx.RandomNormal(mlx.RandomKey(e, seed), mlx.Float32, shape...)
		tensors[name] = &nn.Tensor{Array: mlx.Keep(values[name])}
	}
	return nn.NewWeights(mlx.Float32, tensors), values
}

func TestMLP(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, v := random(e, map[string][]int{
			"m.gate_proj.weight": {24, 16}, "m.up_proj.weight": {24, 16}, "m.down_proj.weight": {16, 24},
			"m.gate_proj.bias": {24}, "m.up_proj.bias": {24}, "m.down_proj.bias": {16},
		})
		defer w.Free()
		mlp := nn.NewMLP(w, "m", 16, 24, true, mlx.GELUTanhActivation)
		if err := w.Err(); err != nil {
			t.Error(err)
			return
		}
		x := mlx.RandomNormal(mlx.RandomKey(e, 99), mlx.Float32, 3, 16)
		linear := func(name string, x *mlx.Array) *mlx.Array {
			return mlx.Add(mlx.MatMul(x, mlx.Transpose(v["m."+name+".weight"])), v["m."+name+".bias"])
		}
		wantNearly(t, "mlp", mlp.Apply(x), linear("down_proj",
			mlx.Multiply(mlx.GELUTanh(linear("gate_proj", x)), linear("up_proj", x))))
	})
}

// normedAttention returns an attention layer with random weights, and their values.
func normedAttention(
	t *testing.T, e *mlx.Thread, heads, kvHeads, dim, hidden int, r config.Rope, window int,
) (*nn.Attention, *nn.Rope, *nn.Weights, map[string]*mlx.Array) {
	t.Helper()
	w, v := random(e, map[string][]int{
		"a.q_proj.weight": {heads * dim, hidden}, "a.k_proj.weight": {kvHeads * dim, hidden},
		"a.v_proj.weight": {kvHeads * dim, hidden},
		"a.o_proj.weight": {hidden, heads * dim}, "a.q_norm.weight": {dim}, "a.k_norm.weight": {dim},
	})
	c := config.Common{Hidden: hidden, Heads: heads, KVHeads: kvHeads, HeadDim: dim, NormEps: 1e-6}
	rope := nn.NewRope(e, w, r, dim)
	attention := nn.NewAttention(w, "a", 0, c, nn.AttentionOptions{
		Rope: rope, Window: window,
		QNorm: nn.NewRMSNorm(w, "a.q_norm", dim, c.NormEps), KNorm: nn.NewRMSNorm(w, "a.k_norm", dim, c.NormEps),
	})
	if err := w.Err(); err != nil {
		t.Error(err)
	}
	return attention, rope, w, v
}

// Attention with norms of queries and keys equals the composition of its parts.
func TestAttention(t *testing.T) {
	const rows, heads, kvHeads, dim, hidden, window = 7, 4, 2, 8, 16, 3
	mlxtest.Do(t, func(e *mlx.Thread) {
		attention, rope, w, v := normedAttention(t, e, heads, kvHeads, dim, hidden,
			config.Rope{Type: config.RopeDefault, Theta: 100}, window)
		defer w.Free()
		seq := cache.NewSequence([]cache.Kind{cache.Rotating(window)})
		defer seq.Free()
		b := nn.NewBatch(e, nn.Part{Seq: seq, Tokens: make([]int32, rows), All: true})
		h, more := mlx.RandomNormal(mlx.RandomKey(e, 99), mlx.Float32, rows, hidden),
			mlx.RandomNormal(mlx.RandomKey(e, 98), mlx.Float32, rows, hidden)
		norm := nn.PlainRMSNorm(1e-6)
		x := norm.Apply(mlx.Add(h, more))

		part := func(name string, n int) *mlx.Array {
			return mlx.Reshape(mlx.MatMul(x, mlx.Transpose(v["a."+name+".weight"])), rows, n, dim)
		}
		q, k := rope.Apply(b, mlx.RMSNorm(part("q_proj", heads), v["a.q_norm.weight"], 1e-6),
			mlx.RMSNorm(part("k_proj", kvHeads), v["a.k_norm.weight"], 1e-6))
		mask := make([]float32, rows*rows)
		for i := range mask {
			if row, key := i/rows, i%rows; key > row || key <= row-window {
				mask[i] = -1e30
			}
		}
		batched := func(x *mlx.Array) *mlx.Array { return mlx.ExpandDims(mlx.SwapAxes(x, 0, 1), 0) }
		y := mlx.Attention(batched(q), batched(k), batched(part("v_proj", kvHeads)), mlx.FromSlice(e, mask, rows, rows), nil,
			0.35355339, false)
		want := mlx.MatMul(mlx.Reshape(mlx.SwapAxes(mlx.Squeeze(y, 0), 0, 1), rows, heads*dim),
			mlx.Transpose(v["a.o_proj.weight"]))
		sum, got := attention.AddApply(b, norm, h, more)
		wantNearly(t, "sum", sum, mlx.Add(h, more))
		wantNearly(t, "attention", got, want)
	})
}
