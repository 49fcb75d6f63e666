package kernels_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A sequence whose first positions are in shared memory gets the same bits as one whose positions are in one store,
// also where parts end within a block of keys.
func TestAttendShared(t *testing.T) {
	const seen, heads, kvHeads, dim = 700, 4, 2, 64
	mlxtest.Do(t, func(e *mlx.Thread) {
		for _, d := range []mlx.DType{mlx.Float32, mlx.Float16, mlx.BFloat16} {
			for _, bits := range []int{0, 8} {
				pack := func(x *mlx.Array) *mlx.Array {
					if bits > 0 {
						return mlx.PackRows(x, bits)
					}
					return x
				}
				random := func(key uint64, shape ...int) *mlx.Array {
					return mlx.RandomNormal(mlx.RandomKey(e, key), d, shape...)
				}
				k, v := pack(random(1, 1, kvHeads, seen, dim)), pack(random(2, 1, kvHeads, seen, dim))
				slots := func(x *mlx.Array, begin, end int) *mlx.Array {
					return mlx.Contiguous(mlx.SliceAxis(x, 2, mlx.Range(begin, end)))
				}
				part := func(begin, end, before int) mlx.StorePart {
					s := mlx.Store{K: slots(k, begin-before, end+1), V: slots(v, begin-before, end+1), Bits: bits}
					return mlx.StorePart{Store: s, Begin: before, End: before + end - begin}
				}
				whole := mlx.AttendSegment{Store: mlx.Store{K: k, V: v, Bits: bits}, Seen: seen}
				split := whole
				split.Shared = []mlx.StorePart{part(0, 1, 0), part(1, 130, 1), part(130, 511, 5)}
				split.Store = mlx.Store{K: slots(k, 511, seen), V: slots(v, 511, seen), Bits: bits}
				for _, rows := range []int{1, 3, 40} {
					for _, window := range []int{0, 200, 650} {
						whole.Rows, whole.Position = rows, seen-rows
						split.Rows, split.Position = rows, seen-rows
						q := random(3, rows, heads, dim)
						o := mlx.AttendOptions{Scale: 0.2, Window: window}
						want, _ := mlx.AttendStored(q, []mlx.AttendSegment{whole}, o)
						got, _ := mlx.AttendStored(q, []mlx.AttendSegment{split}, o)
						if !bytes.Equal(got.ToBytes(), want.ToBytes()) {
							t.Error(fmt.Sprint(d, ", ", bits, " bits, ", rows, " rows, window ", window, ": results differ"))
						}
					}
				}
			}
		}
	})
}
