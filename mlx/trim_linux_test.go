package mlx_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// resident returns the bytes of the process that are in memory, from proc_pid_statm(5).
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// ClearCache returns the memory of freed arrays to the system, also of those between others that live on.
func TestClearCacheTrims(t *testing.T) {
	const arrays, bytes, kept = 300, 1 << 20, 30
	mlxtest.Do(t, func(e *mlx.Thread) {
		if e.Info().GPU {
			t.Skip("a GPU's arrays are not on the heap")
		}
		large := mlx.Zeros(e, mlx.Uint8, 30*bytes) // its end makes the C library keep blocks of this size
		mlx.Eval(large)
		mlx.Free(large)
		e.ClearCache() // its memory is freed before the next call into the engine, not by Free
		var all []*mlx.Array
		for range arrays {
			all = append(all, mlx.Full(e, 1, mlx.Uint8, bytes))
		}
		mlx.Eval(all...)
		for i, a := range all {
			if i%(arrays/kept) != 0 {
				mlx.Free(a)
			}
		}
		before := resident(t)
		e.ClearCache()
		if freed, want := before-resident(t), int64(arrays-kept)*bytes*3/4; freed < want {
			t.Errorf("%d bytes of %d were returned, want at least %d", freed, before, want)
		}
	})
}

// ClearCache returns the kernels' scratch memory, which grows with the rows of the largest product.
func TestClearCacheFreesScratch(t *testing.T) {
	const rows, inner, columns = 4096, 4096, 64
	mlxtest.Do(t, func(e *mlx.Thread) {
		if e.Info().GPU {
			t.Skip("a GPU's products need no scratch memory")
		}
		multiply := func(rows int) {
			x, w := mlx.Full(e, 1, mlx.Float32, rows, inner), mlx.Full(e, 1, mlx.Float32, inner, columns)
			y := mlx.MatMul(x, w)
			mlx.Eval(y)
			mlx.Free(x, w, y)
			e.ClearCache()
		}
		multiply(1)
		before := resident(t)
		multiply(rows)
		if kept := resident(t) - before; kept > 4<<20 {
			t.Errorf("%d bytes stay resident after a product of %d rows", kept, rows)
		}
	})
}
