package nn_test

import (
	"fmt"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

func wantNearly(t *testing.T, what string, got, want *mlx.Array) {
	t.Helper()
	if fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) {
		t.Errorf("%s: shape %v, want %v", what, got.Shape(), want.Shape())
		return
	}
	if d := mlx.Max(mlx.Abs(mlx.Subtract(got, want)), false).Float32s()[0]; !(d < 1e-4) {
		t.Errorf("%s: off by %v", what, d)
	}
}

// Layers stored as one tensor give the corresponding parts of the whole layer's output.
func TestLinearParts(t *testing.T) {
	for _, f := range bankFormats {
		mlxtest.Do(t, func(e *mlx.Thread) {
			weight, plain := stored(e, mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 24, 128), f)
			bias := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.Float32, 24)
			w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a.weight": weight, "a.bias": {Array: mlx.Keep(bias)}})
			defer w.Free()
			parts := nn.NewLinearParts(w, "a", []int{16, 8}, 128, true)
			if err := w.Err(); err != nil {
				t.Error(err)
				return
			}
			x := mlx.RandomNormal(mlx.RandomKey(e, 3), mlx.Float32, 3, 128)
			whole := mlx.Add(mlx.MatMul(x, mlx.Transpose(plain)), bias)
			got := nn.Linears(x, parts[0], parts[1].Split(2))
			wantNearly(t, fmt.Sprintf("%d bits, first", f.Bits), got[0], mlx.SliceAxis(whole, 1, mlx.Range(0, 16)))
			wantNearly(t, fmt.Sprintf("%d bits, second", f.Bits), got[1],
				mlx.Reshape(mlx.SliceAxis(whole, 1, mlx.Range(16, 24)), 3, 2, 4))
		})
	}
	mlxtest.Do(t, func(*mlx.Thread) {
		w := nn.NewWeights(mlx.Float32, nil)
		nn.NewLinearParts(w, "a", []int{1, 2}, 4, false)
		if err := w.Err(); err == nil || err.Error() != "tensor a.weight is missing: "+nn.ErrWeights.Error() {
			t.Errorf("got %v", err)
		}
	})
}

// A matrix is split into heads, their rows are selected, some to be multiplied across, and the sources are freed.
func TestHeadLinear(t *testing.T) {
	const heads, n, in = 3, 96, 64
	for _, f := range bankFormats {
		mlxtest.Do(t, func(e *mlx.Thread) {
			tensor, plain := stored(e, mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, heads*n, in), f)
			plain = mlx.Reshape(plain, heads, n, in)
			w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a": tensor})
			whole := w.Heads(w.Matrix("a", heads*n, in), heads)
			upper := w.Rows(whole, 0, 64)
			lower, across := w.Rows(whole, 64, n), w.Across(upper)
			w.Release([]*nn.Tensor{lower, across}, tensor, whole, upper)
			forth, back := nn.NewHeadLinear(w, lower), nn.NewHeadLinear(w, across)
			for _, rows := range []int{1, 5} {
				x := mlx.RandomNormal(mlx.RandomKey(e, 2), mlx.Float32, rows, heads, in)
				perHead := func(x, matrices *mlx.Array) *mlx.Array {
					return mlx.SwapAxes(mlx.MatMul(mlx.SwapAxes(x, 0, 1), matrices), 0, 1)
				}
				down := mlx.SwapAxes(mlx.SliceAxis(plain, 1, mlx.Range(64, n)), 1, 2)
				wantNearly(t, fmt.Sprintf("%d bits, rows", f.Bits), forth.Apply(x), perHead(x, down))
				wantNearly(t, fmt.Sprintf("%d bits, across", f.Bits), back.Apply(x),
					perHead(x, mlx.SliceAxis(plain, 1, mlx.Range(0, 64))))
			}
			w.Free()
		})
	}
}

// Release frees the given tensors and nothing else.
func TestRelease(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		const size = 1 << 20
		before := e.Memory().Active
		var zeros *mlx.Array
		e.Scope(func() { zeros = mlx.Keep(mlx.Zeros(e, mlx.Float32, size/4/64, 64)) })
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a": {Array: zeros}})
		a := w.Matrix("a", size/4/64, 64)
		mlx.Eval(a.Array)
		transposed := w.Transposed(a)
		w.Release([]*nn.Tensor{transposed}, a)
		if held := e.Memory().Active - before; held < size || held > size+size/2 {
			t.Errorf("%d bytes are allocated, want about %d", held, size)
		}
		w.Free()
		if held := e.Memory().Active - before; held > size/2 {
			t.Errorf("%d bytes are allocated at the end", held)
		}
	})
}

// Layers stored as one tensor allocate no memory of their own.
func TestLinearPartsShare(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		var whole *mlx.Array
		e.Scope(func() {
			whole = mlx.Keep(mlx.Zeros(e, mlx.Float32, 1024, 256))
			mlx.Eval(whole)
		})
		w := nn.NewWeights(mlx.Float32, map[string]*nn.Tensor{"a.weight": {Array: whole}})
		defer w.Free()
		before := e.Memory().Active
		e.Scope(func() {
			parts := nn.NewLinearParts(w, "a", []int{768, 256}, 256, false)
			mlx.Eval(nn.Linears(mlx.Zeros(e, mlx.Float32, 1, 256), parts...)...)
		})
		if more := e.Memory().Active - before; more > 1<<16 {
			t.Errorf("%d more bytes are allocated", more)
		}
	})
}

// Layers are prepared once for each group that they are applied in, however often the groups take turns.
func TestPreparedOnce(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		w, _ := random(e, map[string][]int{"q.weight": {8, 4}, "k.weight": {2, 4}})
		defer w.Free()
		q, k := nn.NewLinear(w, "q", 8, 4, false), nn.NewLinear(w, "k", 2, 4, false)
		x := mlx.Ones(e, mlx.Float32, 3, 4)
		for range 3 {
			nn.Linears(x, q, k)
			q.Apply(x)
		}
		if n := w.Prepared(); n != 2 {
			t.Errorf("%d groups were prepared, want 2", n)
		}
	})
}
