package mlx_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

func TestSlice(t *testing.T) {
	for _, test := range []struct {
		name string
		span mlx.Span
		want []float32
	}{
		{"all", mlx.All(), []float32{0, 1, 2, 3, 4}},
		{"one position", mlx.At(2), []float32{2}},
		{"first", mlx.At(0), []float32{0}},
		{"last", mlx.At(-1), []float32{4}},
		{"from the end", mlx.At(-5), []float32{0}},
		{"range", mlx.Range(1, 3), []float32{1, 2}},
		{"to the end", mlx.Range(3, mlx.End), []float32{3, 4}},
		{"zero to zero is empty", mlx.Range(0, 0), []float32{}},
		{"stop zero is not the end", mlx.Range(2, 0), []float32{}},
		{"from the length on", mlx.Range(5, mlx.End), []float32{}},
		{"beyond is cut", mlx.Range(3, 99), []float32{3, 4}},
		{"negative start", mlx.Range(-2, mlx.End), []float32{3, 4}},
		{"negative stop", mlx.Range(0, -1), []float32{0, 1, 2, 3}},
		{"step", mlx.Strided(0, mlx.End, 2), []float32{0, 2, 4}},
		{"step within", mlx.Strided(1, 4, 2), []float32{1, 3}},
	} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			x := mlx.Arange(e, 0, 5, 1, mlx.Float32)
			y := mlx.Slice(x, test.span)
			if got := y.Float32s(); !slices.Equal(got, test.want) || y.Dim(0) != len(test.want) {
				t.Errorf("%s: %v (%v), want %v", test.name, got, y, test.want)
			}
		})
	}
}

func TestSliceKeepsAxes(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		x := mlx.Reshape(mlx.Arange(e, 0, 24, 1, mlx.Float32), 2, 3, 4)
		y := mlx.Slice(x, mlx.At(1), mlx.All(), mlx.At(-1))
		if !slices.Equal(y.Shape(), []int{1, 3, 1}) || !slices.Equal(y.Float32s(), []float32{15, 19, 23}) {
			t.Errorf("%v: %v", y, y.Float32s())
		}
		z := mlx.SliceAxis(x, -2, mlx.Range(1, mlx.End))
		if !slices.Equal(z.Shape(), []int{2, 2, 4}) {
			t.Errorf("SliceAxis: %v", z)
		}
		u := mlx.SliceUpdate(x, mlx.Scalar(e, float32(-1)), mlx.All(), mlx.At(0), mlx.Range(1, 3))
		if got := mlx.Slice(u, mlx.At(1), mlx.At(0), mlx.All()).Float32s(); !slices.Equal(got, []float32{12, -1, -1, 15}) {
			t.Errorf("SliceUpdate: %v", got)
		}
		if got := mlx.Slice(u, mlx.At(1), mlx.At(1), mlx.All()).Float32s(); !slices.Equal(got, []float32{16, 17, 18, 19}) {
			t.Errorf("SliceUpdate changed other rows: %v", got)
		}
	})
}

// Random spans select the positions that a naive enumeration gives.
func TestSliceRandomly(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	mlxtest.Do(t, func(e *mlx.Thread) {
		for range 400 {
			n, m := r.IntN(6), 1+r.IntN(5)
			span := func(n int) (mlx.Span, []int) {
				if n > 0 && r.IntN(4) == 0 {
					i := r.IntN(2*n) - n
					return mlx.At(i), []int{(i + n) % n}
				}
				start, stop, step := r.IntN(15)-7, pick(r, r.IntN(15)-7, mlx.End), 1+r.IntN(3)
				var at []int
				for i := range n {
					first := start
					if start < 0 {
						first = max(start+n, 0)
					}
					within := stop == mlx.End || stop >= 0 && i < stop || stop < 0 && i < stop+n
					if i >= first && within && (i-first)%step == 0 {
						at = append(at, i)
					}
				}
				return mlx.Strided(start, stop, step), at
			}
			rows, rowsAt := span(n)
			columns, columnsAt := span(m)
			want := []float32{}
			for _, i := range rowsAt {
				for _, j := range columnsAt {
					want = append(want, float32(i*m+j))
				}
			}
			e.Scope(func() {
				x := mlx.Reshape(mlx.Arange(e, 0, float64(n*m), 1, mlx.Float32), n, m)
				y := mlx.Slice(x, rows, columns)
				if got := y.Float32s(); !slices.Equal(got, want) || !slices.Equal(y.Shape(), []int{len(rowsAt), len(columnsAt)}) {
					t.Errorf("%v by %+v, %+v is %v %v, want %v", x, rows, columns, y, got, want)
				}
				u := mlx.SliceUpdate(x, mlx.AddScalar(y, 100), rows, columns)
				if got := mlx.Sum(u, false).Float32s()[0]; got != float32(n*m*(n*m-1)/2+100*len(want)) {
					t.Errorf("%v updated by %+v, %+v sums to %v", x, rows, columns, got)
				}
			})
		}
	})
}

func TestSliceRefuses(t *testing.T) {
	for _, test := range []struct {
		want string
		call func(x *mlx.Array)
	}{
		{"Slice(float32[2 3]): 1 spans for 2 axes", func(x *mlx.Array) { mlx.Slice(x, mlx.All()) }},
		{"Slice(float32[2 3]): 3 spans for 2 axes", func(x *mlx.Array) { mlx.Slice(x, mlx.All(), mlx.All(), mlx.All()) }},
		{"Slice(float32[2 3]): axis 1 has no position 3", func(x *mlx.Array) { mlx.Slice(x, mlx.All(), mlx.At(3)) }},
		{"Slice(float32[2 3]): axis 0 has no position -3", func(x *mlx.Array) { mlx.Slice(x, mlx.At(-3), mlx.All()) }},
		{"step 0 of axis 0 is not positive", func(x *mlx.Array) { mlx.Slice(x, mlx.Strided(0, 1, 0), mlx.All()) }},
		{"SliceAxis(float32[2 3]): no axis 2", func(x *mlx.Array) { mlx.SliceAxis(x, 2, mlx.All()) }},
		{"Dim(float32[2 3]): no axis 5", func(x *mlx.Array) { x.Dim(5) }},
	} {
		err := mlxtest.Try(t, func(e *mlx.Thread) { test.call(mlx.Zeros(e, mlx.Float32, 2, 3)) })
		wantError(t, err, test.want)
	}
}

// wantError checks that an operation failed with a message that contains words.
func wantError(t *testing.T, err error, words string) {
	t.Helper()
	var failed *mlx.Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want an *mlx.Error with %q", err, words)
	}
}
