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

// setMath sets the precision and keeps the instruction set under test.
func setMath(t *testing.T, e *mlx.Thread, fast bool) {
	t.Helper()
	if err := e.SetCPU(mlx.CPUOptions{Threads: 2, ISA: e.CPU().ISA, Fast: fast}); err != nil {
		t.Fatal(err)
	}
}

// eachProduct runs f for every instruction set, precision, format and activation type.
func eachProduct(t *testing.T, f func(t *testing.T, e *mlx.Thread, r *rand.Rand, format weightFormat, d mlx.DType,
	fast bool)) {
	t.Helper()
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, fast := range []bool{false, true} {
			setMath(t, e, fast)
			for i, format := range weightFormats() {
				if fast && format.integers(mlx.BFloat16, true) == 0 {
					continue // these activations are never quantized, so fast has no effect
				}
				for _, d := range floatTypes {
					e.Scope(func() { f(t, e, rand.New(rand.NewPCG(uint64(i), 7)), format, d, fast) })
				}
			}
		}
	})
}

func TestProducts(t *testing.T) {
	eachProduct(t, func(t *testing.T, e *mlx.Thread, r *rand.Rand, f weightFormat, d mlx.DType, fast bool) {
		unit := f.group
		if f.mode < 0 {
			unit = 13
		}
		for _, rows := range []int{1, 2, 3, 5, 6, 7, 8, 9, 11, 14, 16, 17, 33, 130} {
			columns, out := unit*(1+r.IntN(5)), 1+r.IntN(40)
			if rows == 1 || rows == 9 {
				columns = (4096/unit + 1) * unit // more than the kernels process at once
				out = 9
			}
			if rows == 130 {
				out = 5
			}
			w := randomWeights(e, r, f, 0.5, out, columns)
			x := normalRows(e, r, d, 1, rows, columns)
			name := fmt.Sprintf("%v %v fast %v: %d x %d to %d", f, d, fast, rows, columns, out)
			y := w.times(x.Array)
			if y.DType() != f.result(d) {
				t.Errorf("%s: the result has type %v", name, y.DType())
			}
			w.sameProduct(t, name, x, y, one, nil, fast)
		}
	})
}

// All activations and codes have the largest magnitude. Sums before scaling may be far beyond 32 bits.
func TestLargestSums(t *testing.T) {
	eachProduct(t, func(t *testing.T, e *mlx.Thread, r *rand.Rand, f weightFormat, d mlx.DType, fast bool) {
		if f.integers(f.result(d), fast) == 0 {
			return
		}
		largest := byte(0xff)
		if f.mode > 0 {
			largest = 0x77 // code 7 in both halves: the largest magnitude
		}
		const out, rows = 33, 21
		columns := 5 * f.group
		w := weightsOf(e, r, f, 0.5, func() byte { return largest }, out, columns)
		v := make([]float32, rows*columns)
		for i := range v {
			v[i] = 3
			if kind, k := i/columns%4, i%columns; kind == 1 || kind == 2 && k%2 == 1 || kind == 3 && r.IntN(2) == 0 {
				v[i] = -3
			}
		}
		x := rowsOf(e, d, v, rows, columns)
		w.sameProduct(t, fmt.Sprintf("%v %v fast %v", f, d, fast), x, w.times(x.Array), one, nil, fast)
	})
}

func TestLinearLayersShareTheirRows(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(4, 4))
		formats := weightFormats()
		for _, fast := range []bool{false, true} {
			setMath(t, e, fast)
			for try := range 40 {
				d := floatTypes[try%3]
				rows, columns := []int{1, 2, 7, 16, 40}[try%5], 128*(1+r.IntN(3))
				x := normalRows(e, r, d, 1, rows, columns)
				var parts []*mlx.Array
				var modes, groups, bits, biased []int
				var layers []*weights
				var added [][]float64
				for range 1 + r.IntN(4) {
					w := randomWeights(e, r, formats[r.IntN(len(formats))], 0.5, 1+r.IntN(70), columns)
					layers = append(layers, w)
					modes, groups, bits = append(modes, int(w.mode)), append(groups, w.group), append(bits, w.bits)
					parts = append(parts, w.arrays[0])
					for _, a := range w.arrays[1:] {
						if a != nil {
							parts = append(parts, a)
						}
					}
					if r.IntN(2) == 0 {
						bias := normalRows(e, r, floatTypes[r.IntN(3)], 1, w.rows)
						parts, biased, added = append(parts, bias.Array), append(biased, 1), append(added, bias.v)
					} else {
						biased, added = append(biased, 0), append(added, nil)
					}
				}
				first := layers[0].result(d)
				for i, y := range mlx.LinearLayers(x.Array, parts, false, modes, groups, bits, biased, make([]int, len(modes))...) {
					w := layers[i]
					if w.result(d) != first && added[i] != nil {
						continue // MLX's operation rounds before it adds the bias
					}
					name := fmt.Sprintf("%v %v fast %v: %d rows, layer %d of %d", w, d, fast, rows, i, len(layers))
					w.sameProduct(t, name, x, y, one, added[i], fast)
				}
			}
		}
	})
}

func TestGatheredProducts(t *testing.T) {
	eachProduct(t, func(t *testing.T, e *mlx.Thread, r *rand.Rand, f weightFormat, d mlx.DType, fast bool) {
		unit := f.group
		if f.mode < 0 {
			unit = 11
		}
		for _, c := range []struct {
			name                   string
			experts, sources, rows int
			pick                   func(i int) int
			picks                  int
		}{
			{"many experts", 33, 5, 1, func(int) int { return r.IntN(33) }, 40},
			{"one row each", 9, 9, 1, func(i int) int { return 8 - i }, 9},
			{"one expert", 4, 3, 2, func(int) int { return 2 }, 9},
			{"several rows", 3, 2, 5, func(int) int { return r.IntN(3) }, 7},
			{"nothing", 3, 2, 1, nil, 0},
		} {
			columns, out := unit*(1+r.IntN(4)), 1+r.IntN(20)
			w := randomWeights(e, r, f, 0.5, c.experts, out, columns)
			x := normalRows(e, r, d, 1, c.sources, c.rows, columns)
			lhs, rhs := make([]uint32, c.picks), make([]uint32, c.picks)
			for i := range rhs {
				lhs[i], rhs[i] = uint32(r.IntN(c.sources)), uint32(c.pick(i))
			}
			y := w.gathered(x.Array, mlx.FromSlice(e, lhs, c.picks), mlx.FromSlice(e, rhs, c.picks), false)
			if want := []int{c.picks, c.rows, out}; !slices.Equal(y.Shape(), want) {
				t.Errorf("%v, %s: %v, want shape %v", f, c.name, y, want)
				continue
			}
			w.sameProduct(t, fmt.Sprintf("%v %v fast %v, %s", f, d, fast, c.name), x, y, func(row int) (int, int) {
				return int(lhs[row/c.rows])*c.rows + row%c.rows, int(rhs[row/c.rows])
			}, nil, fast)
		}
	})
}

// Extreme activations. A NaN or infinite result must not become finite.
func TestProductsOfExtremes(t *testing.T) {
	eachProduct(t, func(t *testing.T, e *mlx.Thread, r *rand.Rand, f weightFormat, d mlx.DType, fast bool) {
		columns := 128
		for _, c := range []struct {
			name string
			set  func(x []float32)
		}{
			{"an outlier", func(x []float32) { x[17] = 1e4 }},
			{"zeros", func(x []float32) { clear(x) }},
			{"a zero block", func(x []float32) { clear(x[:64]) }},
			{"tiny", func(x []float32) {
				for i := range x {
					x[i] *= 1e-38
				}
			}},
			{"small", func(x []float32) {
				for i := range x {
					x[i] *= 1e-30
				}
			}},
			{"huge", func(x []float32) {
				for i := range x {
					x[i] *= 1e30
				}
			}},
			{"NaN", func(x []float32) { x[70] = float32(math.NaN()) }},
			{"NaN first", func(x []float32) { x[0] = float32(math.NaN()) }},
			{"infinity", func(x []float32) { x[70] = float32(math.Inf(1)) }},
			{"less", func(x []float32) { x[127] = float32(math.Inf(-1)) }},
			{"cancellation", func(x []float32) {
				for i := range x {
					x[i] = float32(1-i%2*2) * 1000
				}
			}},
		} {
			for _, rows := range []int{1, 4, 20} {
				v := make([]float32, rows*columns)
				for i := range v {
					v[i] = float32(r.NormFloat64())
				}
				c.set(v[(rows-1)*columns:])
				x := rowsOf(e, d, v, rows, columns)
				w := randomWeights(e, r, f, 0.5, 11, columns)
				w.sameProduct(t, fmt.Sprintf("%v %v fast %v: %s, %d rows", f, d, fast, c.name, rows), x, w.times(x.Array), one,
					nil, fast)
			}
		}
	})
}

// Exact products are as accurate as float32: they are compared with a sequential float32 sum that is rounded to the
// type of the result.
func TestExactProductsAreAsGoodAsFloat32(t *testing.T) {
	eachProduct(t, func(t *testing.T, e *mlx.Thread, r *rand.Rand, f weightFormat, d mlx.DType, fast bool) {
		if fast {
			return
		}
		columns, out := 1024, 24
		for _, rows := range []int{1, 6, 20} {
			w := randomWeights(e, r, f, 0.5, out, columns)
			x := normalRows(e, r, d, 1, rows, columns)
			y := w.times(x.Array)
			g := mlxtest.Numbers(y.ToBytes(), y.DType())
			plain := make([]float32, len(g))
			want := make([]float64, len(g))
			for i := range g {
				for k := range columns {
					at := i%out*columns + k
					v := x.v[i/out*columns+k]
					plain[i] += float32(v) * float32(w.value(at))
					want[i] += v * w.value(at)
				}
			}
			p := mlxtest.Numbers(mlx.AsType(mlx.FromSlice(e, plain, len(plain)), y.DType()).ToBytes(), y.DType())
			ours, straight := 0.0, 0.0
			for i := range g {
				ours += (g[i] - want[i]) * (g[i] - want[i])
				straight += (p[i] - want[i]) * (p[i] - want[i])
			}
			if math.Sqrt(ours) > 2*math.Sqrt(straight) {
				t.Errorf("%v %v, %d rows: error %g, in float32 %g", f, d, rows, math.Sqrt(ours), math.Sqrt(straight))
			}
		}
	})
}

func TestProductsHaveTheSameBits(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(8, 1))
		for _, f := range weightFormats() {
			for i, rows := range []int{1, 5, 40} {
				d := floatTypes[(i+f.bits)%3]
				columns := 256
				w := randomWeights(e, r, f, 0.5, 300, columns)
				stack := randomWeights(e, r, f, 0.5, 6, 50, columns)
				x := normalRows(e, r, d, 1, rows, columns)
				picks := make([]uint32, rows)
				for i := range picks {
					picks[i] = r.Uint32N(6)
				}
				each := mlx.Reshape(x.Array, rows, 1, columns)
				sameOnAllThreads(t, e, fmt.Sprintf("%v %v, %d rows", f, d, rows), func() []*mlx.Array {
					return []*mlx.Array{w.times(x.Array), w.times(x.Array),
						stack.gathered(each, nil, mlx.FromSlice(e, picks, rows), false)}
				})
			}
		}
	})
}

// Formats that do not exist are errors, even if the shapes match.
func TestProductsRefuseUnknownFormats(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		for _, c := range []struct {
			mode        mlx.QuantMode
			group, bits int
		}{{mlx.Affine, 8, 4}, {mlx.Affine, 16, 4}, {mlx.Affine, 256, 4}, {mlx.Affine, 64, 7}, {mlx.Affine, 64, 16},
			{mlx.MXFP4, 64, 4}, {mlx.NVFP4, 32, 4}, {mlx.MXFP8, 32, 4}} {
			columns := 256
			x := mlx.Zeros(e, mlx.Float32, 3, columns)
			w := mlx.Zeros(e, mlx.Uint32, 5, columns*c.bits/32)
			scales, biases := mlx.Zeros(e, mlx.Float32, 5, columns/c.group), mlx.Zeros(e, mlx.Float32, 5, columns/c.group)
			if c.mode != mlx.Affine {
				scales, biases = mlx.Zeros(e, mlx.Uint8, 5, columns/c.group), nil
			}
			func() {
				defer func() {
					if _, ok := recover().(*mlx.Error); !ok {
						t.Errorf("%v with groups of %d and %d bits was accepted", c.mode, c.group, c.bits)
					}
				}()
				mlx.Eval(mlx.QuantizedMatMul(x, w, scales, biases, true, c.group, c.bits, c.mode))
			}()
		}
	})
}
