package mlx_test

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// tapeModel is a minimal forward pass: rows of a table are rotated and attend to a store, which the tape writes to.
type tapeModel struct {
	e       *mlx.Thread
	table   *mlx.Array
	freqs   *mlx.Array
	k, v    *mlx.Array
	strided bool
}

func newTapeModel(e *mlx.Thread, strided bool) *tapeModel {
	store := func() *mlx.Array { return mlx.Zeros(e, mlx.Float32, 1, 2, 16, 8) }
	f := &tapeModel{e, mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 20, 48),
		mlx.FromSlice(e, []float32{1, 0.5, 0.25, 0.125}), store(), store(), strided}
	mlx.Eval(f.table, f.k, f.v) // so that the tape does not include them
	return f
}

func (f *tapeModel) forward(ids, at *mlx.Array, first int) *mlx.Array {
	rows := mlx.TableRows(f.table, ids, 1)
	parts := mlx.SplitEven(rows, 3, 1) // strided views if there are several rows
	for i, x := range parts {
		if !f.strided {
			x = mlx.Take(x, mlx.FromSlice(f.e, []int32{0}), 0)
		}
		parts[i] = mlx.Reshape(x, -1, 2, 8)
	}
	both := mlx.RotateRows(parts[:2], at, f.freqs, false, false, 1)
	n := ids.Dim(0)
	out, stores := mlx.Attend(both[0], both[1], parts[2], []mlx.AttendSegment{{Store: mlx.Store{K: f.k, V: f.v}, Rows: n,
		Position: first}},
		mlx.AttendOptions{Scale: 0.3, Positions: at})
	f.k, f.v = stores[0].K, stores[0].V
	return mlx.MultiplyScalar(mlx.Add(out, mlx.SiLU(out)), 0.5)
}

func needCPU(t *testing.T, e *mlx.Thread) bool {
	if e.Info().GPU {
		t.Log("only a CPU has tapes")
	}
	return !e.Info().GPU
}

// A replay gives the same bits as the graph for other inputs, and does not change earlier results.
func TestTape(t *testing.T) {
	for _, n := range []int{1, 3} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			if !needCPU(t, e) {
				return
			}
			f, plain := newTapeModel(e, n > 1), newTapeModel(e, n > 1)
			var tape *mlx.Tape
			var given []*mlx.Array
			var want [][]float32
			for step := range 5 {
				ids, at := make([]int32, n), make([]int32, n)
				for i := range n {
					ids[i], at[i] = int32(7*step+i)%20, int32(step*n+i)
				}
				want = append(want, plain.forward(mlx.FromSlice(e, ids), mlx.FromSlice(e, at), step*n).Float32s())
				if tape != nil {
					given = append(given, tape.Play(ids, at))
					continue
				}
				i, a := mlx.FromSlice(e, ids), mlx.FromSlice(e, at)
				out := f.forward(i, a, 0)
				if tape = mlx.Record(out, i, a); tape == nil {
					t.Errorf("%d rows: no tape", n)
					return
				}
				given = append(given, out)
			}
			tape.Free()
			tape.Free()
			for i, a := range given {
				if got := a.Float32s(); !slices.Equal(got, want[i]) {
					t.Errorf("%d rows, step %d: %v, want %v", n, i, got[:4], want[i][:4])
				}
			}
			if k, p := f.k.Float32s(), plain.k.Float32s(); !slices.Equal(k, p) {
				t.Error("the tape stored other keys")
			}
		})
	}
}

// Invalid inputs of a replay cause errors, not writes outside the store.
func TestTapeErrors(t *testing.T) {
	var tape *mlx.Tape
	mlxtest.Do(t, func(e *mlx.Thread) {
		if needCPU(t, e) {
			ids, at := mlx.FromSlice(e, []int32{3}), mlx.FromSlice(e, []int32{0})
			tape = mlx.Record(newTapeModel(e, false).forward(ids, at, 0), ids, at)
		}
	})
	if tape == nil {
		return
	}
	play := func(lists ...[]int32) error {
		return mlxtest.Try(t, func(*mlx.Thread) { tape.Play(lists...) })
	}
	wantError(t, play([]int32{1}), "2 values, got 1")
	wantError(t, play([]int32{1, 2}, []int32{1}), "2 values, got 3")
	wantError(t, play([]int32{1}, []int32{16}), "position 16 do not fit storage of 16")
	wantError(t, play([]int32{1}, []int32{-1}), "position -1 do not fit")
	if err := play([]int32{1}, []int32{15}); err != nil {
		t.Errorf("after errors: %v", err)
	}
	mlxtest.Do(t, func(*mlx.Thread) { tape.Free() })
	wantError(t, play([]int32{1}, []int32{0}), "the tape was freed")
}

// MLX's own nodes cannot be recorded. Record still lets them be computed.
func TestNoTape(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		ids := mlx.FromSlice(e, []int32{1, 2, 3})
		if tape := mlx.Record(mlx.CumSum(mlx.AsType(ids, mlx.Float32), 0, false, true), ids); tape != nil {
			t.Error("a tape of a cumulative sum")
		}
		floats := mlx.FromSlice(e, []float32{1, 2})
		if tape := mlx.Record(mlx.Add(floats, floats), floats); tape != nil {
			t.Error("a tape whose input is not int32")
		}
		sum := mlx.Add(floats, floats)
		tape := mlx.Record(sum)
		if got := sum.Float32s(); !slices.Equal(got, []float32{2, 4}) || (tape == nil) != e.Info().GPU {
			t.Errorf("%v, tape %v", got, tape)
		}
		tape.Free()
	})
}
