package kernels_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// hardRows returns rows with difficult distributions: normal, of one sign, with a large offset, with outliers,
// constant, tiny, huge, and mixtures.
func hardRows(r *rand.Rand, rows, dim int) []float32 {
	list := make([]float32, 0, rows*dim)
	for range rows {
		kind, shift := r.IntN(7), 0.0
		scale := math.Ldexp(1, r.IntN(40)-20)
		switch kind {
		case 1:
			shift = 1000 * scale
		case 2:
			shift = -3 * scale
		case 3:
			scale *= 1e-30
		case 4:
			scale = 1e36
		case 5:
			shift, scale = scale, 0
		}
		for range dim {
			v := r.NormFloat64()
			if kind == 6 && r.IntN(9) == 0 {
				v *= 1000
			}
			list = append(list, float32(v*scale+shift))
		}
	}
	return list
}

// written returns what Attend writes for keys x [T, heads, dim], as rows [T, heads, bytes].
func written(e *mlx.Thread, x *mlx.Array, bits int) []byte {
	rows, heads, dim := x.Dim(0), x.Dim(1), x.Dim(2)
	store := mlx.Store{K: mlx.Zeros(e, mlx.Uint8, 1, heads, rows, mlx.PackedBytes(dim, bits)), Bits: bits}
	q := mlx.Zeros(e, mlx.Float32, rows, heads, dim)
	_, stores := mlx.Attend(q, x, nil, []mlx.AttendSegment{{Store: store, Rows: rows}},
		mlx.AttendOptions{Scale: 1, Values: dim})
	return mlx.Contiguous(mlx.Transpose(mlx.Reshape(stores[0].K, heads, rows, -1), 1, 0, 2)).ToBytes()
}

// Kernels of all instruction sets write the same bytes as MLX's operations, and unpacked elements are within half a
// step of the originals. A step is the range of the group divided by the number of codes, plus the rounding of the
// bias.
func TestPackRows(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(8, 4))
		for _, bits := range []int{8, 4} {
			for _, dim := range []int{4, 12, 32, 36, 64, 80, 128, 576} {
				for _, d := range floatTypes {
					e.Scope(func() {
						x := mlx.AsType(mlx.FromSlice(e, hardRows(r, 21*2, dim), 21, 2, dim), d)
						what := fmt.Sprintf("%v, %d channels in %d bits", d, dim, bits)
						packed := mlx.PackRows(x, bits)
						want := packed.ToBytes()
						if len(want) != 42*mlx.PackedBytes(dim, bits) {
							t.Errorf("%s: %d bytes", what, len(want))
						}
						sameOnAllThreads(t, e, what, func() []*mlx.Array {
							return []*mlx.Array{mlx.FromBytes(e, written(e, x, bits), mlx.Uint8, 21, 2, mlx.PackedBytes(dim, bits))}
						})
						if got := written(e, x, bits); !bytes.Equal(got, want) {
							t.Errorf("%s: the kernel packs differently from MLX", what)
						}
						checkSteps(t, what, elements(x), elements(mlx.UnpackRows(packed, bits, mlx.Float32)), dim, bits)
					})
				}
			}
		}
	})
}

func checkSteps(t *testing.T, what string, given, read []float64, dim, bits int) {
	t.Helper()
	codes := math.Ldexp(1, bits) - 1
	for at := 0; at < len(given); at += dim {
		for g := 0; g < dim; g += 32 {
			group := given[at+g : at+min(g+32, dim)]
			low, high, finite := math.Inf(1), math.Inf(-1), true
			for _, v := range group {
				low, high = min(low, v), max(high, v)
				finite = finite && !math.IsInf(v, 0) && !math.IsNaN(v)
			}
			// The bias may be one bfloat16 below the minimum, and the scale larger than the range requires.
			step := (high - low + math.Abs(low)*0x1p-7) / codes * (1 + 0x1p-7)
			for i, v := range group {
				got := read[at+g+i]
				if !finite {
					if !math.IsNaN(got) {
						t.Errorf("%s: %v in a group that is not finite is decoded as %v", what, v, got)
						return
					}
				} else if !(math.Abs(got-v) <= step*0.5001+math.Abs(v)*0x1p-22+1e-38) {
					t.Errorf("%s: %v is decoded as %v, more than half a step of %v off", what, v, got, step)
					return
				}
			}
		}
	}
}

// The stored bytes do not depend on how rows are divided into steps, on other sequences of the batch, or on a ring's
// position.
func TestPackedStepsAreEqual(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		const rows, dim = 61, 64
		r := rand.New(rand.NewPCG(1, 1))
		x := mlx.FromSlice(e, hardRows(r, rows*2, dim), rows, 2, dim)
		q := mlx.Zeros(e, mlx.Float32, rows, 4, dim)
		cut := func(x *mlx.Array, from, to int) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(from, to)) }
		for _, bits := range []int{8, 4} {
			for _, ring := range []bool{false, true} {
				var want []byte
				for _, step := range []int{rows, 1, 7, 20} {
					o := mlx.AttendOptions{Scale: 1}
					capacity := rows
					if ring {
						o.Window, o.Ring, capacity = 8, true, 11
					}
					room := func() *mlx.Array { return mlx.Zeros(e, mlx.Uint8, 1, 2, capacity, mlx.PackedBytes(dim, bits)) }
					store := mlx.Store{K: room(), V: room(), Bits: bits}
					for at := 0; at < rows; at += step {
						end := min(at+step, rows)
						k := cut(x, at, end)
						other := mlx.Store{K: room(), V: room(), Bits: bits}
						segments := []mlx.AttendSegment{{Store: other, Rows: 1}, {Store: store, Rows: end - at, Position: at}}
						k = mlx.Concatenate(0, cut(x, 5, 6), k)
						_, stores := mlx.Attend(mlx.Concatenate(0, cut(q, 0, 1), cut(q, at, end)), k, mlx.Negative(k), segments, o)
						store = stores[1]
					}
					got := append(store.K.ToBytes(), store.V.ToBytes()...)
					if want == nil {
						want = bytes.Clone(got)
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%d bits, a ring: %v: steps of %d rows store other bytes than one step", bits, ring, step)
					}
				}
			}
		}
	})
}
