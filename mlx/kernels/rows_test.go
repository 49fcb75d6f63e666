package kernels_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

var rowLengths = []int{1, 3, 7, 16, 33, 100, 2051}

func TestNormKernels(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(1, 1))
		for _, d := range floatTypes {
			for _, n := range rowLengths {
				for _, scale := range []float64{1, 1e-3, 200} {
					const rows, eps = 3, 1e-5
					x, y := normalRows(e, r, d, scale, rows, n), normalRows(e, r, d, scale, rows, n)
					w, bias := normalRows(e, r, d, 1, n), normalRows(e, r, d, 1, n)
					w32 := normalRows(e, r, mlx.Float32, 1, n)
					name := fmt.Sprintf("%v[%d]*%v", d, n, scale)

					sum := mlx.AddRMSNorm(x.Array, y.Array, w.Array, eps, false)
					if want := mlx.Add(x.Array, y.Array); !slices.Equal(sum[0].ToBytes(), want.ToBytes()) {
						t.Errorf("%s: the sum differs from Add", name)
					}
					added := testRows{sum[0], mlxtest.Numbers(sum[0].ToBytes(), d)}
					ones := make([]float64, n)
					plus, plus32 := slices.Clone(w.v), slices.Clone(w32.v)
					for i := range ones {
						ones[i], plus[i], plus32[i] = 1, plus[i]+1, plus32[i]+1
					}
					for what, c := range map[string]struct {
						got  *mlx.Array
						x, w []float64
					}{
						"RMSNorm":                 {mlx.RMSNorm(x.Array, w.Array, eps), x.v, w.v},
						"RMSNorm without weights": {mlx.RMSNorm(x.Array, nil, eps), x.v, ones},
						"RMSNormPlusOne":          {mlx.RMSNormPlusOne(x.Array, w.Array, eps), x.v, plus},
						"RMSNormPlusOne, float32": {mlx.RMSNormPlusOne(x.Array, w32.Array, eps), x.v, plus32},
						"AddRMSNorm":              {sum[1], added.v, w.v},
						"AddRMSNorm, plus one":    {mlx.AddRMSNorm(x.Array, y.Array, w.Array, eps, true)[1], added.v, plus},
					} {
						want := make([]float64, rows*n)
						for i := range rows {
							row := c.x[i*n : (i+1)*n]
							squares := 0.0
							for _, v := range row {
								squares += v * v
							}
							for j, v := range row {
								want[i*n+j] = v / math.Sqrt(squares/float64(n)+eps) * c.w[j]
							}
						}
						wantClose(t, what+" of "+name, c.got, want, 4, func(i int) float64 { return math.Abs(want[i]) })
					}

					want, size := make([]float64, rows*n), make([]float64, rows*n)
					for i := range rows {
						row := x.v[i*n : (i+1)*n]
						mean, squares, largest := 0.0, 0.0, 0.0
						for _, v := range row {
							mean += v / float64(n)
							largest = max(largest, math.Abs(v))
						}
						for _, v := range row {
							squares += (v - mean) * (v - mean)
						}
						factor := 1 / math.Sqrt(squares/float64(n)+eps)
						for j, v := range row {
							want[i*n+j] = (v-mean)*factor*w.v[j] + bias.v[j]
							size[i*n+j] = largest*factor*math.Abs(w.v[j]) + math.Abs(bias.v[j])
						}
					}
					wantClose(t, "LayerNorm of "+name, mlx.LayerNorm(x.Array, w.Array, bias.Array, eps), want, 4,
						func(i int) float64 { return size[i] })
				}
			}
		}
	})
}

func TestActivationKernels(t *testing.T) {
	logistic := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	tanhGate := func(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }
	alone := map[string]struct {
		run  func(x *mlx.Array) *mlx.Array
		want func(x float64) float64
	}{
		"Sigmoid":  {mlx.Sigmoid, logistic},
		"SiLU":     {mlx.SiLU, func(x float64) float64 { return x * logistic(x) }},
		"GELU":     {mlx.GELU, func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }},
		"GELUTanh": {mlx.GELUTanh, func(x float64) float64 { return x * logistic(2*tanhGate(x)) }},
		// An eighth, whose squares float16 holds.
		"ReLU2": {func(x *mlx.Array) *mlx.Array { return mlx.ReLU2(mlx.MultiplyScalar(x, 0.125)) },
			func(x float64) float64 { return max(x/8, 0) * max(x/8, 0) }},
		"Clip": {func(x *mlx.Array) *mlx.Array { return mlx.Clip(x, 3) },
			func(x float64) float64 { return max(min(x, 3), -3) }},
		"Softplus": {mlx.Softplus, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
		"Softcap": {func(x *mlx.Array) *mlx.Array { return mlx.Softcap(x, 30) },
			func(x float64) float64 { return 30 * math.Tanh(x/30) }},
	}
	gates := map[string]struct {
		run  func(gate, up *mlx.Array) *mlx.Array
		want func(x float64) float64
	}{
		"SwiGLU": {mlx.SwiGLU, alone["SiLU"].want}, "GEGLU": {mlx.GEGLU, alone["GELU"].want},
		"GEGLUTanh": {mlx.GEGLUTanh, alone["GELUTanh"].want}, "SigmoidGate": {mlx.SigmoidGate, logistic},
	}
	// The results amplify the rounding of the exponential's argument by this factor.
	condition := func(name string, x float64) float64 {
		if strings.HasSuffix(name, "Tanh") && math.Abs(x) < 17 {
			return 1 + 2*math.Abs(tanhGate(x))
		}
		return 2
	}
	const tiny = 0x1p-105 // smaller results may flush to 0
	var values []float32
	for x := -16.0; x <= 16; x += 0.013 {
		values = append(values, float32(x))
	}
	values = append(values, 0, float32(math.Copysign(0, -1)), 1e-20, -1e-20, 85, -60, 1000, float32(math.Inf(1)),
		float32(math.NaN()))
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(2, 2))
		for _, d := range floatTypes {
			x := rowsOf(e, d, values, len(values))
			for name, f := range alone {
				want := make([]float64, len(x.v))
				for i, v := range x.v {
					want[i] = f.want(v)
				}
				wantClose(t, fmt.Sprintf("%s of %v", name, d), f.run(x.Array), want, 4, func(i int) float64 {
					return condition(name, x.v[i]) * max(tiny, math.Abs(want[i]))
				})
			}
			for _, n := range []int{1, 5, 24, 1031} {
				both := normalRows(e, r, d, 3, 2, 2*n)
				halves := mlx.SplitEven(both.Array, 2, -1)
				for name, f := range gates {
					want := make([]float64, 2*n)
					for i := range want {
						row, j := i/n, i%n
						want[i] = f.want(both.v[row*2*n+j]) * both.v[row*2*n+n+j]
					}
					scale := func(i int) float64 {
						return condition(name, both.v[i/n*2*n+i%n]) * max(tiny, math.Abs(want[i]))
					}
					wantClose(t, fmt.Sprintf("%s of %v[2 %d]", name, d, n), f.run(halves[0], halves[1]), want, 4, scale)
					wantClose(t, fmt.Sprintf("%s of the halves of %v[2 %d]", name, d, n), f.run(both.Array, nil), want, 4, scale)
				}
			}
		}
	})
}

func TestSoftmaxKernels(t *testing.T) {
	inf := float32(math.Inf(-1))
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(3, 3))
		check := func(x testRows, n int) {
			probabilities, logs := make([]float64, len(x.v)), make([]float64, len(x.v)/n)
			for i := range logs {
				row, sum := x.v[i*n:(i+1)*n], 0.0
				m := slices.Max(row)
				for _, v := range row {
					sum += math.Exp(v - m)
				}
				logs[i] = m + math.Log(sum)
				for j, v := range row {
					probabilities[i*n+j] = math.Exp(v-m) / sum
				}
			}
			wantClose(t, fmt.Sprintf("Softmax of %v", x.Array), mlx.Softmax(x.Array, false, -1), probabilities, 4,
				func(i int) float64 { return probabilities[i] * 16 })
			wantClose(t, fmt.Sprintf("LogSumExp of %v", x.Array), mlx.LogSumExp(x.Array, false, -1), logs, 4,
				func(i int) float64 { return 1 + math.Abs(logs[i]) })
		}
		for _, d := range floatTypes {
			for _, n := range append(rowLengths, 20000) {
				check(normalRows(e, r, d, 4, 2, n), n)
			}
			check(rowsOf(e, d, []float32{inf, 2, inf, 5, inf, inf, 1, 0, inf, 3}, 1, 10), 10)
			long := make([]float32, 20000) // includes whole blocks of -inf
			for i := range long {
				long[i] = inf
			}
			long[17000] = 3
			check(rowsOf(e, d, long, 1, len(long)), len(long))
			nothing := rowsOf(e, d, []float32{inf, inf, inf}, 1, 3)
			if got := mlx.LogSumExp(nothing.Array, false, -1).Float32s()[0]; got != inf {
				t.Errorf("LogSumExp of -inf is %v", got)
			}
			long[3] = float32(math.NaN())
			if got := mlx.LogSumExp(rowsOf(e, d, long, 1, len(long)).Array, false, -1).Float32s()[0]; got == got {
				t.Errorf("LogSumExp with a NaN is %v", got)
			}
		}
	})
}

func TestRotateKernels(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(4, 4))
		for _, d := range floatTypes {
			for _, half := range []int{1, 3, 8, 13, 32} {
				for _, traditional := range []bool{false, true} {
					const T, dim, scale = 4, 70, 1.25
					at := []int32{0, 1, 4097, 1 << 20}
					freqs := make([]float32, half)
					for j := range freqs {
						freqs[j] = float32(math.Pow(10000, -float64(j)/float64(half)))
					}
					freqs[half-1] = 0
					q, k := normalRows(e, r, d, 1, T, 3, dim), normalRows(e, r, d, 1, T, 1, dim)
					out := mlx.RotateRows([]*mlx.Array{q.Array, k.Array}, mlx.FromSlice(e, at), mlx.FromSlice(e, freqs), traditional,
						false, scale)
					for which, x := range []testRows{q, k} {
						want, size := slices.Clone(x.v), make([]float64, len(x.v))
						for i := 0; i < len(x.v); i += dim {
							t := i * T / len(x.v)
							for j := range half {
								a, b := i+j, i+j+half
								if traditional {
									a, b = i+2*j, i+2*j+1
								}
								sin, cos := math.Sincos(float64(float32(at[t]) * freqs[j]))
								want[a] = scale * (x.v[a]*cos - x.v[b]*sin)
								want[b] = scale * (x.v[b]*cos + x.v[a]*sin)
								size[a] = math.Abs(x.v[a]) + math.Abs(x.v[b])
								size[b] = size[a]
							}
						}
						wantClose(t, fmt.Sprintf("%v, %d pairs, traditional %v", x.Array, half, traditional), out[which], want, 2,
							func(i int) float64 { return size[i] })
					}
				}
			}
		}
	})
}

// The fused norm and rotation equals the norm followed by the rotation.
func TestRotateNormed(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(4, 5))
		at := mlx.FromSlice(e, []int32{0, 7, 4097})
		for _, d := range floatTypes {
			for _, plusOne := range []bool{false, true} {
				xs := []*mlx.Array{normalRows(e, r, d, 3, 3, 5, 70).Array, normalRows(e, r, d, 1, 3, 1, 70).Array}
				weights := []*mlx.Array{normalRows(e, r, d, 1, 70).Array, normalRows(e, r, d, 1, 70).Array}
				freqs := mlx.Full(e, 0.3, mlx.Float32, 13)
				var normed []*mlx.Array
				for i, x := range xs {
					if plusOne {
						normed = append(normed, mlx.RMSNormPlusOne(x, weights[i], 1e-5))
					} else {
						normed = append(normed, mlx.RMSNorm(x, weights[i], 1e-5))
					}
				}
				want := mlx.RotateRows(normed, at, freqs, false, false, 1.5)
				for i, got := range mlx.RotateNormedRows(xs, weights, 1e-5, plusOne, at, freqs, false, false, 1.5) {
					if !slices.Equal(got.ToBytes(), want[i].ToBytes()) {
						t.Errorf("%v, plus one %v: array %d differs", d, plusOne, i)
					}
				}
			}
		}
	})
}
