package mlx_test

import (
	"bytes"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

func TestMemoryCounters(t *testing.T) {
	const bytes = 4 << 20
	mlxtest.Do(t, func(e *mlx.Thread) {
		e.ClearCache()
		e.ResetPeak()
		start := e.Memory()
		if start.Budget <= 0 || start.Cached != 0 {
			t.Errorf("initially %+v", start)
		}
		var x *mlx.Array
		e.Scope(func() { x = mlx.Keep(mlx.Zeros(e, mlx.Uint8, bytes)) })
		if got := e.Memory(); got.Active-start.Active > 1000 || got.Arrays != start.Arrays+1 {
			t.Errorf("before an evaluation %+v, at the start %+v", got, start)
		}
		mlx.Eval(x)
		if got := e.Memory().Active - start.Active; got < bytes || got > bytes+1<<16 {
			t.Errorf("%d bytes became active, want %d", got, bytes)
		}
		if got := mlx.BufferBytes(x, nil, x); got < bytes || got > bytes+1<<16 {
			t.Errorf("its buffer has %d bytes", got)
		}
		mlx.Free(x)
		end := e.Memory()
		if end.Active-start.Active >= bytes || end.Arrays != start.Arrays {
			t.Errorf("after Free %+v, at the start %+v", end, start)
		}
		if got := end.Peak - start.Active; got < bytes {
			t.Errorf("the peak grew by %d", got)
		}
		e.ResetPeak()
		if got := e.Memory().Peak; got > start.Active+1<<16 {
			t.Errorf("after ResetPeak the peak is %d, with %d active", got, start.Active)
		}
		e.ClearCache()
		if got := e.Memory().Cached; got != 0 {
			t.Errorf("after ClearCache %d bytes are cached", got)
		}
	})
}

// The budget includes memory that is already in use, and a refused array leaves nothing allocated.
func TestBudgetCountsActive(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		defer smallBudget(e, 1<<20)()
		x := mlx.Zeros(e, mlx.Uint8, 700_000)
		y := mlx.Zeros(e, mlx.Uint8, 700_000) // each fits alone
		mlx.Eval(x)
		before := e.Memory()
		err := func() (err error) {
			defer func() { err, _ = recover().(error) }()
			mlx.Add(x, x)
			return nil
		}()
		wantError(t, err, "Add(uint8[700000], uint8[700000]): uint8[700000] needs 700000 bytes")
		if got := e.Memory(); got != before {
			t.Errorf("the refused array left %+v, before %+v", got, before)
		}
		mlx.Free(x)
		mlx.Eval(y)
	})
}

// Large arrays of zeros are cleared by all threads, in pieces. Their memory may have had other values before.
func TestZerosAreCleared(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		for _, n := range []int{0, 1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 1_000_003} {
			for range 3 {
				e.Scope(func() { mlx.Eval(mlx.Full(e, 255, mlx.Uint8, n)) })
				e.Scope(func() {
					got := mlx.Zeros(e, mlx.Uint8, n).ToBytes()
					if zeros := bytes.Count(got, []byte{0}); len(got) != n || zeros != n {
						t.Errorf("%d bytes, of which %d are zero, want %d", len(got), zeros, n)
					}
				})
			}
		}
	})
}
