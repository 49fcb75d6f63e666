package kernels_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A sequence whose first positions are in shared memory, in up to 64 parts, gets the same bits as one with one store,
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
				three, most := whole, whole
				three.Shared = []mlx.StorePart{part(0, 1, 0), part(1, 130, 1), part(130, 511, 5)}
				three.Store = mlx.Store{K: slots(k, 511, seen), V: slots(v, 511, seen), Bits: bits}
				for i := range 64 {
					most.Shared = append(most.Shared, part(10*i, 10*i+10, min(i, 3)))
				}
				most.Store = mlx.Store{K: slots(k, 640, seen), V: slots(v, 640, seen), Bits: bits}
				for _, rows := range []int{1, 3, 40} {
					for _, window := range []int{0, 200, 650} {
						q := random(3, rows, heads, dim)
						attend := func(s mlx.AttendSegment) []byte {
							s.Rows, s.Position = rows, seen-rows
							out, _ := mlx.AttendStored(q, []mlx.AttendSegment{s}, mlx.AttendOptions{Scale: 0.2, Window: window})
							return out.ToBytes()
						}
						want := attend(whole)
						for _, split := range []mlx.AttendSegment{three, most} {
							if !bytes.Equal(attend(split), want) {
								t.Error(fmt.Sprint(d, ", ", bits, " bits, ", rows, " rows, window ", window, ": results with ",
									len(split.Shared), " parts differ"))
							}
						}
					}
				}
			}
		}
	})
}

func TestAttendSharedLimit(t *testing.T) {
	err := mlxtest.Try(t, func(e *mlx.Thread) {
		keys := mlx.Zeros(e, mlx.Float32, 1, 1, 65, 64)
		s := mlx.AttendSegment{Store: mlx.Store{K: keys, V: keys}, Rows: 1, Position: 65, Seen: 66}
		for i := range 65 {
			s.Shared = append(s.Shared, mlx.StorePart{Store: s.Store, Begin: i, End: i + 1})
		}
		mlx.AttendStored(mlx.Zeros(e, mlx.Float32, 1, 1, 64), []mlx.AttendSegment{s}, mlx.AttendOptions{Scale: 1})
	})
	if err == nil || !strings.Contains(err.Error(), "shared part 64") || !strings.Contains(err.Error(), "too many") {
		t.Errorf("65 parts: %v", err)
	}
}
