package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// sameOnAllThreads checks that an operation gives the same bits with 1, 2 and 3 threads.
func sameOnAllThreads(t *testing.T, e *mlx.Thread, name string, f func() []*mlx.Array) {
	t.Helper()
	now := e.CPU()
	var want [][]byte
	for threads := 1; threads <= 3; threads++ {
		if err := e.SetCPU(mlx.CPUOptions{Threads: threads, ISA: now.ISA, Fast: now.Fast}); err != nil {
			t.Fatal(err)
		}
		e.Scope(func() {
			for i, a := range f() {
				b := slices.Clone(a.ToBytes())
				if threads == 1 {
					want = append(want, b)
				} else if !slices.Equal(b, want[i]) {
					t.Errorf("%s: result %d differs with %d threads", name, i, threads)
				}
			}
		})
	}
}

var floatTypes = []mlx.DType{mlx.Float32, mlx.Float16, mlx.BFloat16}

// unitOf returns the distance between 1 and the next number of a type.
func unitOf(d mlx.DType) float64 {
	return map[mlx.DType]float64{mlx.Float32: 0x1p-23, mlx.Float16: 0x1p-10, mlx.BFloat16: 0x1p-7}[d]
}

// testRows is an array and its elements as float64.
type testRows struct {
	*mlx.Array
	v []float64
}

func rowsOf(e *mlx.Thread, d mlx.DType, v []float32, shape ...int) testRows {
	a := mlx.AsType(mlx.FromSlice(e, v, shape...), d)
	return testRows{a, mlxtest.Numbers(a.ToBytes(), d)}
}

func normalRows(e *mlx.Thread, r *rand.Rand, d mlx.DType, scale float64, shape ...int) testRows {
	n := 1
	for _, s := range shape {
		n *= s
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64() * scale)
	}
	return rowsOf(e, d, v, shape...)
}

// wantClose compares with a float64 reference. It allows half a unit of the result's type for the final rounding, and
// the given number of float32 units of scale(i) for the computation.
func wantClose(t *testing.T, name string, got *mlx.Array, want []float64, units float64, scale func(i int) float64) {
	t.Helper()
	g := mlxtest.Numbers(got.ToBytes(), got.DType())
	if len(g) != len(want) {
		t.Errorf("%s: %v has %d elements, want %d", name, got, len(g), len(want))
		return
	}
	least := map[mlx.DType]float64{mlx.Float32: 0x1p-126, mlx.Float16: 0x1p-14, mlx.BFloat16: 0x1p-126}[got.DType()]
	for i, w := range want {
		s := math.Abs(w)
		limit := 0.501*unitOf(got.DType())*max(s, least) + units*0x1p-23*max(scale(i), 0x1p-126)
		if g[i] == w || math.IsNaN(g[i]) && math.IsNaN(w) || math.Abs(g[i]-w) <= limit {
			continue
		}
		t.Errorf("%s: element %d of %v is %v, want %v within %g", name, i, got, g[i], w, limit)
		return
	}
}
