package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// referenceAttention computes the attention of one query vector by definition. mask returns the masked score of key j.
func referenceAttention[T float32 | float64](q []T, keys, values [][]T, scale, softcap T, mask func(j int, score T) T,
	sink *T) []T {
	exp := func(x T) T { return T(math.Exp(float64(x))) }
	scores := make([]T, len(keys))
	top := T(math.Inf(-1))
	for j, k := range keys {
		var dot T
		for d := range q {
			dot += q[d] * k[d]
		}
		dot *= scale
		if softcap > 0 {
			dot = softcap * T(math.Tanh(float64(dot/softcap)))
		}
		scores[j] = mask(j, dot)
		if scores[j] > top || math.IsNaN(float64(scores[j])) {
			top = scores[j]
		}
	}
	var total T
	if sink != nil {
		top = max(top, *sink)
		total = exp(*sink - top)
	}
	out := make([]T, len(values[0]))
	for j, v := range values {
		w := exp(scores[j] - top)
		total += w
		for d := range out {
			out[d] += w * v[d]
		}
	}
	for d := range out {
		out[d] /= total
	}
	return out
}

func convert[T, F float32 | float64](from []F) []T {
	to := make([]T, len(from))
	for i, v := range from {
		to[i] = T(v)
	}
	return to
}

// vectorsOf splits a list into vectors of the given size.
func vectorsOf[T any](list []T, size int) [][]T {
	var rows [][]T
	for i := 0; i+size <= len(list); i += size {
		rows = append(rows, list[i:i+size])
	}
	return rows
}

// elements returns the elements of an array as float64.
func elements(x *mlx.Array) []float64 { return mlxtest.Numbers(x.ToBytes(), x.DType()) }

type attentionCase struct {
	batch, heads, kvHeads, rows, keys, dim, valueDim int

	causal, sinks bool
	mask          string // bool, add, none
	spread        float64
	fast          bool // the weights of values may be rounded to bfloat16
}

// exact computes the case element by element, in float64 or in float32.
func exact[T float32 | float64](c attentionCase, q, k, v, mask, sinks []float64) []float64 {
	vectors := vectorsOf(convert[T](q), c.dim)
	keys, values := vectorsOf(convert[T](k), c.dim), vectorsOf(convert[T](v), c.valueDim)
	var out []float64
	for i, vector := range vectors {
		row, head, b := i%c.rows, i/c.rows%c.heads, i/c.rows/c.heads
		first := (b*c.kvHeads + head/(c.heads/c.kvHeads)) * c.keys
		seen := c.keys
		if c.causal {
			seen = c.keys - c.rows + row + 1
		}
		var sink *T
		if sinks != nil {
			s := T(sinks[head])
			sink = &s
		}
		y := referenceAttention(vector, keys[first:first+seen], values[first:first+seen], T(1/math.Sqrt(float64(c.dim))), 0,
			func(j int, score T) T {
				switch at := row*c.keys + j; {
				case c.mask == "add":
					return score + T(mask[at])
				case c.mask == "bool" && mask[at] == 0:
					return -math.MaxFloat32
				}
				return score
			}, sink)
		out = append(out, convert[float64](y)...)
	}
	return out
}

func (c attentionCase) run(t *testing.T, e *mlx.Thread, d mlx.DType) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(c.dim*c.keys)))
	random := func(shape ...int) *mlx.Array {
		n := 1
		for _, s := range shape {
			n *= s
		}
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(r.NormFloat64())
		}
		return mlx.AsType(mlx.FromSlice(e, list, shape...), d)
	}
	q := random(c.batch, c.heads, c.rows, c.dim)
	if c.spread != 0 {
		q = mlx.MultiplyScalar(q, c.spread)
	}
	k, v := random(c.batch, c.kvHeads, c.keys, c.dim), random(c.batch, c.kvHeads, c.keys, c.valueDim)
	var mask, sinks *mlx.Array
	var maskValues, sinkValues []float64
	switch c.mask {
	case "add":
		mask = random(c.rows, c.keys)
		maskValues = elements(mask)
	case "bool":
		mask = mlx.Greater(random(1, 1, c.rows, c.keys), mlx.Zeros(e, d))
		maskValues = elements(mlx.AsType(mask, mlx.Float32))
	}
	if c.sinks {
		sinks = random(c.heads)
		sinkValues = elements(sinks)
	}
	attend := func() []*mlx.Array {
		return []*mlx.Array{mlx.Attention(q, k, v, mask, sinks, 1/math.Sqrt(float64(c.dim)), c.causal)}
	}
	sameOnAllThreads(t, e, fmt.Sprint(c), attend)
	got := elements(attend()[0])
	qs, ks, vs := elements(q), elements(k), elements(v)
	want := exact[float64](c, qs, ks, vs, maskValues, sinkValues)
	plain := exact[float32](c, qs, ks, vs, maskValues, sinkValues)
	least := 0x1p-23
	if c.fast {
		least = roundedWeights(vs) / 2
	}
	compareToPlain(t, fmt.Sprintf("%v %+v", d, c), got, want, plain, least, unitOf(d)/2)
}

// roundedWeights bounds the error of a weighted sum of values whose weights are rounded to bfloat16.
func roundedWeights(values []float64) float64 {
	return 0x1p-8 * max(slices.Max(values), -slices.Min(values))
}

// compareToPlain allows twice the largest error of plain, a straightforward float32 computation, or at least twice
// least, plus the rounding of the result.
func compareToPlain(t *testing.T, what string, got, want, plain []float64, least, unit float64) {
	t.Helper()
	worst := least
	for i := range want {
		worst = max(worst, math.Abs(plain[i]-want[i]))
	}
	for i := range want {
		if err := math.Abs(got[i] - want[i]); !(err <= 2*worst+unit*math.Abs(want[i])*1.01) {
			t.Errorf("%s: element %d is %v, want %v: error %.3g, in plain float32 at most %.3g",
				what, i, got[i], want[i], err, worst)
			return
		}
	}
}

func TestAttentionKernels(t *testing.T) {
	cases := []attentionCase{
		{batch: 1, heads: 1, kvHeads: 1, rows: 1, keys: 1, dim: 16, valueDim: 16, causal: true},
		{batch: 2, heads: 6, kvHeads: 2, rows: 1, keys: 131, dim: 64, valueDim: 64},
		{batch: 1, heads: 4, kvHeads: 1, rows: 1, keys: 1000, dim: 128, valueDim: 64, causal: true, sinks: true},
		{batch: 1, heads: 3, kvHeads: 3, rows: 2, keys: 77, dim: 96, valueDim: 128, causal: true},
		{batch: 1, heads: 8, kvHeads: 2, rows: 4, keys: 413, dim: 64, valueDim: 64, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 7, keys: 45, dim: 64, valueDim: 32, mask: "bool"},
		{batch: 2, heads: 2, kvHeads: 2, rows: 6, keys: 45, dim: 32, valueDim: 32, mask: "add", sinks: true},
		{batch: 1, heads: 5, kvHeads: 1, rows: 33, keys: 50, dim: 19, valueDim: 7, causal: true},
		{batch: 1, heads: 14, kvHeads: 2, rows: 61, keys: 211, dim: 80, valueDim: 80, causal: true, sinks: true},
		{batch: 2, heads: 4, kvHeads: 2, rows: 37, keys: 101, dim: 24, valueDim: 40, mask: "add"},
		{batch: 1, heads: 4, kvHeads: 4, rows: 37, keys: 101, dim: 64, valueDim: 64, mask: "bool", sinks: true},
		{batch: 1, heads: 20, kvHeads: 1, rows: 3, keys: 90, dim: 576, valueDim: 512, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 20, keys: 70, dim: 512, valueDim: 512, causal: true},
		{batch: 1, heads: 2, kvHeads: 1, rows: 40, keys: 300, dim: 64, valueDim: 64, causal: true, spread: 30},
		{batch: 1, heads: 2, kvHeads: 1, rows: 2, keys: 300, dim: 64, valueDim: 64, causal: true, spread: 300},
		{batch: 1, heads: 2, kvHeads: 2, rows: 9, keys: 40, dim: 64, valueDim: 64, spread: 1e-4},
	}
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, c := range cases {
			for _, d := range []mlx.DType{mlx.Float32, mlx.BFloat16, mlx.Float16} {
				e.Scope(func() { c.run(t, e, d) })
			}
			withFastMath(t, e, func() {
				c.fast = true
				c.run(t, e, mlx.BFloat16)
			})
		}
	})
}

// withFastMath runs f in a scope with fast arithmetic.
func withFastMath(t *testing.T, e *mlx.Thread, f func()) {
	t.Helper()
	now := e.CPU()
	set := func(fast bool) {
		if err := e.SetCPU(mlx.CPUOptions{Threads: now.Threads, ISA: now.ISA, Fast: fast}); err != nil {
			t.Error(err)
		}
	}
	set(true)
	defer set(now.Fast)
	e.Scope(f)
}

// NaN values and fully masked rows affect only the rows that they belong to.
func TestAttentionOddValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, rows := range []int{3, 40} {
			const dim, keys = 64, 50
			q, k := slices.Repeat([]float32{0.1}, rows*dim), slices.Repeat([]float32{0.1}, keys*dim)
			q[dim+5] = nan // row 1
			v := make([]float32, keys*dim)
			for i := range v {
				v[i] = float32(i / dim)
			}
			add := make([]float32, rows*keys)
			for j := range keys {
				add[2*keys+j] = -inf // row 2 is fully masked
			}
			array := func(list []float32, shape ...int) *mlx.Array { return mlx.FromSlice(e, list, shape...) }
			qs, ks, vs := array(q, 1, 1, rows, dim), array(k, 1, 1, keys, dim), array(v, 1, 1, keys, dim)
			y := mlx.Attention(qs, ks, vs, array(add, rows, keys), nil, 1, false).Float32s()
			bools := mlx.Equal(array(add, rows, keys), mlx.Zeros(e, mlx.Float32))
			z := mlx.Attention(qs, ks, vs, bools, nil, 1, false).Float32s()
			for row := range rows {
				a, b := float64(y[row*dim]), float64(z[row*dim])
				average := math.Abs(a-24.5) < 1e-4
				if want := row != 1 && row != 2; average != want || math.IsNaN(a) == want {
					t.Errorf("%d rows, row %d with an additive mask: %v", rows, row, a)
				}
				// As in MLX, a row that a bool mask hides completely attends to all keys equally.
				if average := math.Abs(b-24.5) < 1e-4; average != (row != 1) {
					t.Errorf("%d rows, row %d with a bool mask: %v", rows, row, b)
				}
			}
		}
	})
}
