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

// weightFormat is a format of weights. mode is -1 for plain weights, whose type is then scales.
type weightFormat struct {
	mode        mlx.QuantMode
	group, bits int
	scales      mlx.DType
}

func (f weightFormat) String() string {
	if f.mode < 0 {
		return f.scales.String()
	}
	return fmt.Sprintf("%s%dx%d(%v)", []string{"affine", "mxfp4-", "mxfp8-", "nvfp4-"}[f.mode], f.bits, f.group, f.scales)
}

// weightFormats returns all formats. Affine formats alternate between the types of scales.
func weightFormats() (list []weightFormat) {
	for _, bits := range []int{2, 3, 4, 5, 6, 8} {
		for i, group := range []int{32, 64, 128} {
			list = append(list, weightFormat{mlx.Affine, group, bits, floatTypes[(i+bits)%3]})
		}
	}
	list = append(list, weightFormat{mlx.MXFP4, 32, 4, mlx.Uint8}, weightFormat{mlx.MXFP8, 32, 8, mlx.Uint8},
		weightFormat{mlx.NVFP4, 16, 4, mlx.Uint8})
	for _, d := range floatTypes {
		list = append(list, weightFormat{-1, 1, d.Size() * 8, d})
	}
	return list
}

// integers returns the largest integer that activations of a type are quantized to, or 0 if they are not quantized.
func (f weightFormat) integers(x mlx.DType, fast bool) (largest float64) {
	switch {
	case f.mode < 0 || f.mode == mlx.MXFP8:
		return 0
	case fast:
		return 127
	case x == mlx.Float32:
		return 0
	}
	return 32767
}

// result returns the type of a product.
func (f weightFormat) result(x mlx.DType) mlx.DType {
	if f.mode > 0 || x == f.scales {
		return x
	}
	return mlx.Float32
}

// weights are matrices [..., out, in] of a format. Each element is scaled + added; kernels may sum the two parts
// separately.
type weights struct {
	weightFormat
	rows, columns int
	arrays        [3]*mlx.Array // codes, scales, biases
	scaled, added []float64
}

func (w *weights) value(i int) float64 { return w.scaled[i] + w.added[i] }

// randomWeights returns weights with random codes and scales.
func randomWeights(e *mlx.Thread, r *rand.Rand, f weightFormat, size float64, shape ...int) *weights {
	return weightsOf(e, r, f, size, func() byte { return byte(r.Uint32()) }, shape...)
}

// weightsOf returns weights with the given codes and random scales. One group in twenty is zero, one has an outlier's
// scale.
func weightsOf(e *mlx.Thread, r *rand.Rand, f weightFormat, size float64, code func() byte, shape ...int) *weights {
	rank := len(shape)
	w := &weights{weightFormat: f, rows: shape[rank-2], columns: shape[rank-1]}
	n := 1
	for _, s := range shape {
		n *= s
	}
	packedShape := slices.Clone(shape)
	if f.mode < 0 {
		a := normalRows(e, r, f.scales, size, shape...)
		w.arrays[0], w.scaled, w.added = a.Array, a.v, make([]float64, n)
		return w
	}
	codes := make([]byte, n*f.bits/8)
	for i := range codes {
		codes[i] = code()
		if f.mode == mlx.MXFP8 && codes[i]&0x7f == 0x7f {
			codes[i] = 0 // NaN in the standard, 480 in MLX
		}
	}
	groups := n / f.group
	scale, bias := make([]float64, groups), make([]float64, groups)
	packedShape[rank-1] = w.columns / f.group
	if f.mode == mlx.Affine {
		s, b := make([]float32, groups), make([]float32, groups)
		for i := range s {
			switch r.IntN(20) {
			case 0:
			case 1:
				s[i] = float32(-size * r.Float64() * 4)
				b[i] = float32(size * r.NormFloat64() * 20)
			default:
				s[i] = float32(size*(0.2+r.Float64())) / float32(int(1)<<f.bits)
				b[i] = -s[i] * float32(int(1)<<(f.bits-1)) * float32(1+0.2*r.NormFloat64())
			}
		}
		scales, biases := rowsOf(e, f.scales, s, packedShape...), rowsOf(e, f.scales, b, packedShape...)
		w.arrays[1], w.arrays[2], scale, bias = scales.Array, biases.Array, scales.v, biases.v
	} else {
		s := make([]byte, groups)
		for i := range s {
			if f.mode == mlx.NVFP4 {
				s[i] = byte(r.IntN(0x60))
				scale[i] = fp8(s[i])
			} else {
				s[i] = byte(120 + r.IntN(6) + int(math.Log2(size)))
				scale[i] = math.Ldexp(1, int(s[i])-127)
			}
		}
		w.arrays[1] = mlx.FromBytes(e, s, mlx.Uint8, packedShape...)
	}
	packedShape[rank-1] = w.columns * f.bits / 32
	w.arrays[0] = mlx.FromBytes(e, codes, mlx.Uint32, packedShape...)
	w.scaled, w.added = make([]float64, n), make([]float64, n)
	for i := range w.scaled {
		code := 0
		for b := range f.bits { // codes are packed across byte boundaries
			at := i*f.bits + b
			code |= int(codes[at/8]>>(at%8)&1) << b
		}
		s := scale[i/f.group]
		switch f.mode {
		case mlx.Affine:
			w.scaled[i], w.added[i] = float64(code)*s, bias[i/f.group]
		case mlx.MXFP8:
			w.scaled[i] = fp8(byte(code)) * s
		default:
			v := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[code&7]
			if code&8 != 0 {
				v = -v
			}
			w.scaled[i], w.added[i] = (v+6)*s, -6*s
		}
	}
	return w
}

// fp8 decodes e4m3.
func fp8(b byte) float64 {
	exponent, fraction := int(b>>3&15), float64(b&7)
	v := math.Ldexp(fraction, -9)
	if exponent != 0 {
		v = math.Ldexp(8+fraction, exponent-10)
	}
	if b&0x80 != 0 {
		return -v
	}
	return v
}

// product computes one element: a row of x times a row of matrix m, plus added. limit is the allowed error of a kernel:
// float32 summation (relative to the sum of absolute terms, because they may cancel), quantization of each block of
// activations, and the rounding of the result.
func (w *weights) product(
	x []float64, m, n int, added float64, xType, out mlx.DType, fast bool,
) (value, limit float64) {
	row := (m*w.rows + n) * w.columns
	block := min(w.group, 64)
	if w.mode < 0 {
		block = 64
	}
	levels := w.integers(xType, fast)
	size, lost := math.Abs(added), 0.0
	value = added
	for k0 := 0; k0 < w.columns; k0 += block {
		peak, scaled := 0.0, 0.0
		for k := k0; k < min(k0+block, w.columns); k++ {
			s, a := w.scaled[row+k], w.added[row+k]
			value += x[k] * (s + a)
			size += math.Abs(x[k]) * (math.Abs(s) + math.Abs(a))
			peak = max(peak, math.Abs(x[k]))
			scaled += math.Abs(s)
		}
		if levels > 0 {
			lost += peak / levels * 0.505 * scaled
			if peak < 1e-33 {
				lost += 1e-33 * scaled // smaller activations quantize to 0
			}
		} else if xType == mlx.BFloat16 {
			lost += 0x1p-126 * (scaled + float64(block)) // bfloat16 products flush subnormals to 0
		}
	}
	limit = lost + 0x1p-24*size*math.Sqrt(float64(w.columns)+64) + 0x1p-126
	return value, limit + 0.501*unitOf(out)*max(math.Abs(value)+limit, map[mlx.DType]float64{mlx.Float16: 0x1p-14}[out])
}

// sameProduct compares y [rows][out] with a float64 reference.
func (w *weights) sameProduct(t *testing.T, name string, x testRows, y *mlx.Array, matrix func(row int) (source, m int),
	added []float64, fast bool) {
	t.Helper()
	g, xType := mlxtest.Numbers(y.ToBytes(), y.DType()), x.DType()
	if xType != y.DType() {
		xType = y.DType() // activations are converted first
	}
	for i := range g {
		source, m := matrix(i / w.rows)
		add := 0.0
		if added != nil {
			add = added[i%w.rows]
		}
		want, limit := w.product(x.v[source*w.columns:][:w.columns], m, i%w.rows, add, xType, y.DType(), fast)
		if math.IsNaN(want) || math.IsInf(want, 0) {
			if !math.IsNaN(g[i]) && !math.IsInf(g[i], 0) {
				t.Errorf("%s: element %d is %v, want %v", name, i, g[i], want)
				return
			}
			continue
		}
		largest := map[mlx.DType]float64{mlx.Float16: 65504}[y.DType()]
		if largest > 0 && math.Abs(want)+limit > largest && math.IsInf(g[i], int(want)) {
			continue
		}
		if !(math.Abs(g[i]-want) <= limit) {
			t.Errorf("%s: element %d is %v, want %v within %g", name, i, g[i], want, limit)
			return
		}
	}
}

func one(row int) (source, m int) { return row, 0 }

func (w *weights) times(x *mlx.Array) *mlx.Array {
	if w.mode < 0 {
		return mlx.MatMul(x, mlx.SwapAxes(w.arrays[0], 0, 1))
	}
	return mlx.QuantizedMatMul(x, w.arrays[0], w.arrays[1], w.arrays[2], true, w.group, w.bits, w.mode)
}

func (w *weights) gathered(x, lhs, rhs *mlx.Array, sorted bool) *mlx.Array {
	if w.mode < 0 {
		return mlx.GatherMM(x, mlx.SwapAxes(w.arrays[0], -1, -2), lhs, rhs, sorted)
	}
	return mlx.GatherQMM(x, w.arrays[0], w.arrays[1], w.arrays[2], lhs, rhs, true, w.group, w.bits, w.mode, sorted)
}

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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
