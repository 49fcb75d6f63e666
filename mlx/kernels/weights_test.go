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
