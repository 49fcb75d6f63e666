package mlx_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// numbersFile writes a file with 0, 1, 2, ... as float32 after some other bytes.
func numbersFile(t *testing.T, before, n int) string {
	t.Helper()
	b := make([]byte, before)
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	path := filepath.Join(t.TempDir(), "weights")
	if err := os.WriteFile(path, b, 0o444); err != nil {
		t.Fatal(err)
	}
	return path
}

// Arrays read the file at any offset, several may share a region, and they outlive it.
func TestRegion(t *testing.T) {
	for _, before := range []int{0, 4, 8, 12, 64, 100, 16384} {
		path := numbersFile(t, before, 10)
		mlxtest.Do(t, func(e *mlx.Thread) {
			r := mlx.OpenRegion(e, path, int64(before), 40)
			x, y := r.Array(8, mlx.Float32, 2, 3), r.Array(0, mlx.Uint16, 2)
			r.Close()
			r.Close()
			if got := x.Float32s(); !slices.Equal(got, []float32{2, 3, 4, 5, 6, 7}) {
				t.Errorf("at offset %d: %v", before, got)
			}
			if got := mlx.ToSlice[uint16](y); !slices.Equal(got, []uint16{0, 0}) {
				t.Errorf("at offset %d: %v", before, got)
			}
			if got := mlx.Sum(mlx.Add(x, x), false).Float32s()[0]; got != 54 {
				t.Errorf("at offset %d: sum of doubles %v", before, got)
			}
		})
	}
}

func TestRegionIsMapped(t *testing.T) {
	if mlxtest.Open(t).Info().GPU {
		t.Skip("on a GPU a region may be a copy")
	}
	path := numbersFile(t, 64, 100_000)
	var x *mlx.Array
	mlxtest.Do(t, func(e *mlx.Thread) {
		before := e.Memory()
		r := mlx.OpenRegion(e, path, 64, 400_000)
		x = mlx.Keep(r.Array(0, mlx.Float32, 100_000))
		r.Close()
		after := e.Memory()
		if after.Mapped-before.Mapped != 400_064 || after.Active != before.Active {
			t.Errorf("before %+v, after %+v", before, after)
		}
		mlx.Free(x)
		if got := e.Memory().Mapped; got != before.Mapped {
			t.Errorf("%d bytes stay mapped, %d before", got, before.Mapped)
		}
	})
}

// MLX may reuse the memory of an argument that has no other references. It must not do so with a mapped file.
func TestRegionIsNotOverwritten(t *testing.T) {
	path := numbersFile(t, 64, 1000)
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := mlx.OpenRegion(e, path, 64, 4000)
		x, other := r.Array(0, mlx.Float32, 500), r.Array(2000, mlx.Float32, 500)
		r.Close()
		y := mlx.Negative(x)
		z := mlx.Add(mlx.SliceUpdate(other, mlx.Scalar(e, float32(0)), mlx.Range(0, 2)), other)
		mlx.Free(x, other)
		if got := y.Float32s(); got[7] != -7 {
			t.Errorf("got %v", got[:8])
		}
		if got := z.Float32s(); got[0] != 500 || got[2] != 1004 {
			t.Errorf("got %v", got[:8])
		}
		again := mlx.OpenRegion(e, path, 64, 4000)
		defer again.Close()
		if got := again.Array(0, mlx.Float32, 1000).Float32s(); got[7] != 7 || got[500] != 500 {
			t.Errorf("the file now has %v and %v", got[:8], got[500])
		}
	})
}

func TestRegionRefuses(t *testing.T) {
	path := numbersFile(t, 64, 10)
	open := func(path string, offset, length int64) func(e *mlx.Thread) {
		return func(e *mlx.Thread) { mlx.OpenRegion(e, path, offset, length).Close() }
	}
	array := func(offset int64, d mlx.DType, shape ...int) func(e *mlx.Thread) {
		return func(e *mlx.Thread) {
			r := mlx.OpenRegion(e, path, 64, 40)
			defer r.Close()
			r.Array(offset, d, shape...)
		}
	}
	for _, test := range []struct {
		want string
		call func(e *mlx.Thread)
	}{
		{"nosuch: No such file", open(filepath.Join(filepath.Dir(path), "nosuch"), 0, 1)},
		{"weights has 104 bytes; bytes 64 to 105 were asked for", open(path, 64, 41)},
		{"were asked for", open(path, -1, 4)},
		{"were asked for", open(path, 0, -4)},
		{"were asked for", open(path, math.MaxInt64, math.MaxInt64)},
		{"does not lie in a region of 40 bytes", array(0, mlx.Float32, 11)},
		{"does not lie in a region of 40 bytes", array(2, mlx.Float32, 1)},
		{"does not lie in a region of 40 bytes", array(-4, mlx.Float32, 1)},
		{"does not lie in a region of 40 bytes", array(44, mlx.Float32, 0)},
		{"does not lie in a region of 40 bytes", array(0, mlx.Float32, 1<<30, 1<<30)},
		{"dimension -1 is out of range", array(0, mlx.Float32, -1)},
	} {
		wantError(t, mlxtest.Try(t, test.call), test.want)
	}
	wantError(t, mlxtest.Try(t, func(e *mlx.Thread) {
		r := mlx.OpenRegion(e, path, 64, 40)
		r.Close()
		r.Array(0, mlx.Float32, 1)
	}), "it was closed")
}

func TestEmptyRegion(t *testing.T) {
	path := numbersFile(t, 8, 0)
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := mlx.OpenRegion(e, path, 8, 0)
		defer r.Close()
		if x := r.Array(0, mlx.Float32, 0, 3); len(x.Float32s()) != 0 {
			t.Errorf("got %v", x)
		}
	})
}
