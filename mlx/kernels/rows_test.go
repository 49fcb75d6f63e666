package kernels_test

import (
	"cmp"
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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

func TestPickKernels(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(5, 5))
		check := func(name string, x testRows, n, k int) {
			t.Helper()
			best, where := mlx.Largest(x.Array, k), mlx.ArgMax(x.Array, -1, false)
			values := mlxtest.Numbers(best[0].ToBytes(), x.DType())
			ids, first := mlx.ToSlice[uint32](best[1]), mlx.ToSlice[uint32](where)
			for i := range len(x.v) / n {
				row := x.v[i*n : (i+1)*n]
				key := func(id int) float64 {
					if math.IsNaN(row[id]) {
						return math.Inf(1)
					}
					return row[id]
				}
				order := make([]int, n)
				for j := range order {
					order[j] = j
				}
				slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(b), key(a)) })
				for j := range k {
					got, want := int(ids[i*k+j]), order[j]
					if v := values[i*k+j]; got != want || v != row[want] && !(math.IsNaN(v) && math.IsNaN(row[want])) {
						t.Errorf("%s: element %d of %d is %v at %d, want %v at %d", name, j, k, v, got, row[want], want)
						return
					}
				}
				want := order[0]
				if at := slices.IndexFunc(row, math.IsNaN); at >= 0 {
					want = at
				}
				if int(first[i]) != want {
					t.Errorf("%s: ArgMax is %d, want %d", name, first[i], want)
				}
			}
		}
		for _, d := range floatTypes {
			for _, n := range append(rowLengths, 32000, 9001) {
				for _, k := range []int{1, 2, 40, 300, n} {
					if k <= n && (n < 10000 || k <= 300) {
						check(fmt.Sprintf("%v[2 %d]", d, n), normalRows(e, r, d, 3, 2, n), n, k)
					}
				}
			}
			v := make([]float32, 9001)
			check("equal ones", rowsOf(e, d, v, 1, len(v)), len(v), 40)
			v[8200], v[8999] = 1, 1
			check("two of a later piece", rowsOf(e, d, v, 1, len(v)), len(v), 3)
			for i := range v {
				v[i] = -inf
			}
			check("nothing", rowsOf(e, d, v, 1, len(v)), len(v), 5)
			v[77] = -3
			check("one", rowsOf(e, d, v, 1, len(v)), len(v), 5)
			v[8500], v[8700], v[12] = nan, nan, inf
			check("NaN", rowsOf(e, d, v, 1, len(v)), len(v), 5)
		}
	})
}

// The rows of a packed table equal those that MLX unpacks, on each instruction set, including ids outside the table.
func TestTableKernels(t *testing.T) {
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(6, 6))
		ids := mlx.FromSlice(e, []int32{4, 0, -1, 2, 99, -99})
		inside := mlx.FromSlice(e, []int32{4, 0, 4, 2, 4, 0})
		for _, d := range floatTypes {
			table := normalRows(e, r, d, 3, 5, 384)
			if !slices.Equal(mlx.TableRows(table.Array, ids, 1).ToBytes(), mlx.Take(table.Array, inside, 0).ToBytes()) {
				t.Errorf("%v: rows differ from Take", d)
			}
			for _, f := range []struct {
				mode        mlx.QuantMode
				group, bits []int
			}{
				{mlx.Affine, []int{32, 64, 128}, []int{2, 3, 4, 5, 6, 8}}, {mlx.MXFP4, []int{32}, []int{4}},
				{mlx.MXFP8, []int{32}, []int{8}}, {mlx.NVFP4, []int{16}, []int{4}},
			} {
				for _, group := range f.group {
					for _, bits := range f.bits {
						parts := append(mlx.Quantize(table.Array, group, bits, f.mode, nil), nil)
						want := mlx.Take(mlx.Dequantize(parts[0], parts[1], parts[2], group, bits, f.mode, nil, d), inside, 0)
						for _, scale := range []float64{1, 22.6} {
							got := mlx.PackedTableRows(parts[0], parts[1], parts[2], ids, scale, group, bits, f.mode, d)
							if !slices.Equal(got.ToBytes(), mlx.MultiplyScalar(want, scale).ToBytes()) {
								t.Errorf("%v, format %v, group %d, %d bits, scale %v: differs from MLX",
									d, f.mode, group, bits, scale)
							}
						}
					}
				}
			}
			// All scale bytes and all codes.
			codes := make([]uint32, 256*32)
			for i := range codes {
				codes[i] = r.Uint32()
			}
			scales := make([]uint8, 512)
			for i := range scales {
				scales[i] = uint8(i / 2)
			}
			all := make([]int32, 256)
			for i := range all {
				all[i] = int32(i)
			}
			for _, f := range []struct {
				mode        mlx.QuantMode
				group, bits int
			}{{mlx.MXFP4, 32, 4}, {mlx.MXFP8, 32, 8}, {mlx.NVFP4, 16, 4}} {
				w, s := mlx.FromSlice(e, codes[:512*f.group*f.bits/32], 256, 2*f.group*f.bits/32), mlx.FromSlice(e, scales, 256, 2)
				got := mlx.PackedTableRows(w, s, nil, mlx.FromSlice(e, all), 1, f.group, f.bits, f.mode, d)
				want := mlx.Dequantize(w, s, nil, f.group, f.bits, f.mode, nil, d)
				g, v := mlxtest.Numbers(got.ToBytes(), d), mlxtest.Numbers(want.ToBytes(), d)
				for i := range v {
					if g[i] != v[i] && !(math.IsNaN(g[i]) && math.IsNaN(v[i])) {
						t.Errorf("%v, format %v, scale byte %d: %v, want %v", d, f.mode, i/(2*f.group), g[i], v[i])
						break
					}
				}
			}
		}
	})
}

func TestDeltaKernels(t *testing.T) {
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, d := range floatTypes {
			for _, c := range []struct {
				keyHeads, heads, keyDim, valueDim int
				lengths                           []int
			}{
				{1, 1, 4, 1, []int{1}}, {1, 2, 13, 7, []int{2, 1, 20}}, {2, 4, 64, 38, []int{1, 1, 1}}, {2, 2, 128, 128, []int{35}},
			} {
				rows := 0
				for _, n := range c.lengths {
					rows += n
				}
				size := 1 / math.Sqrt(float64(c.keyDim))
				q, k := normalRows(e, r, d, size, rows, c.keyHeads, c.keyDim), normalRows(e, r, d, size, rows, c.keyHeads, c.keyDim)
				v := normalRows(e, r, d, 1, rows, c.heads, c.valueDim)
				gates, beta := mlx.Sigmoid(normalRows(e, r, mlx.Float32, 2, rows, c.heads).Array),
					mlx.Sigmoid(normalRows(e, r, d, 2, rows, c.heads).Array)
				g, b := mlxtest.Numbers(gates.ToBytes(), mlx.Float32), mlxtest.Numbers(beta.ToBytes(), d)
				var states []*mlx.Array
				var wantStates, wantEvery [][]float64
				wantY := make([]float64, 0, len(v.v))
				row := 0
				for _, n := range c.lengths {
					s := normalRows(e, r, mlx.Float32, 1, c.heads, c.valueDim, c.keyDim)
					states = append(states, s.Array)
					state, every := slices.Clone(s.v), []float64{}
					for range n {
						for h := range c.heads {
							kh := (row*c.keyHeads + h/(c.heads/c.keyHeads)) * c.keyDim
							for i := range c.valueDim {
								line := state[(h*c.valueDim+i)*c.keyDim:][:c.keyDim]
								seen, y := 0.0, 0.0
								for j := range line {
									line[j] *= g[row*c.heads+h]
									seen += line[j] * k.v[kh+j]
								}
								change := (v.v[(row*c.heads+h)*c.valueDim+i] - seen) * b[row*c.heads+h]
								for j := range line {
									line[j] += change * k.v[kh+j]
									y += line[j] * q.v[kh+j]
								}
								wantY = append(wantY, y)
							}
						}
						every = append(every, state...)
						row++
					}
					wantStates, wantEvery = append(wantStates, state), append(wantEvery, every)
				}
				name := fmt.Sprintf("%v %+v", d, c)
				constantScale := func(int) float64 { return 4 }
				last := mlx.GatedDeltaRows(q.Array, k.Array, v.Array, gates, beta, states, false, false, c.lengths...)
				all := mlx.GatedDeltaRows(q.Array, k.Array, v.Array, gates, beta, states, true, false, c.lengths...)
				wantClose(t, name+": outputs", last[0], wantY, 4, constantScale)
				wantClose(t, name+": outputs, every state", all[0], wantY, 4, constantScale)
				for i := range states {
					wantClose(t, name+": state", last[i+1], wantStates[i], 4, constantScale)
					wantClose(t, name+": every state", all[i+1], wantEvery[i], 4, constantScale)
				}
				copies := make([]*mlx.Array, len(states))
				for i, s := range states {
					copies[i] = mlx.Copy(s)
				}
				mlx.Eval(copies...)
				place := mlx.GatedDeltaRows(q.Array, k.Array, v.Array, gates, beta, copies, false, true, c.lengths...)
				for i := range place {
					if !slices.Equal(place[i].ToBytes(), last[i].ToBytes()) {
						t.Errorf("%s: result %d differs in place", name, i)
					}
				}
				if !slices.Equal(copies[0].ToBytes(), last[1].ToBytes()) {
					t.Errorf("%s: the new state is not in the old state's memory", name)
				}
			}
		}
	})
}

// The bits of a result do not depend on the number of threads, nor on how rows are divided into segments and batches.
func TestRowKernelsAreDeterministic(t *testing.T) {
	onEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(8, 8))
		for _, d := range floatTypes {
			x, y, w := normalRows(e, r, d, 1, 37, 2048), normalRows(e, r, d, 1, 37, 2048), normalRows(e, r, d, 1, 2048)
			states := []*mlx.Array{normalRows(e, r, mlx.Float32, 1, 4, 40, 64).Array,
				normalRows(e, r, mlx.Float32, 1, 4, 40, 64).Array}
			q, v := normalRows(e, r, d, 0.1, 37, 2, 64).Array, normalRows(e, r, d, 1, 37, 4, 40).Array
			gate := mlx.Sigmoid(normalRows(e, r, mlx.Float32, 1, 37, 4).Array)
			tails := []*mlx.Array{normalRows(e, r, d, 1, 3, 2048).Array, normalRows(e, r, d, 1, 3, 2048).Array}
			taps := normalRows(e, r, d, 1, 4, 2048).Array
			at := mlx.Arange(e, 0, 37, 1, mlx.Int32)
			freqs := mlx.Full(e, 0.3, mlx.Float32, 32)
			for name, f := range map[string]func() []*mlx.Array{
				"AddRMSNorm":     func() []*mlx.Array { return mlx.AddRMSNorm(x.Array, y.Array, w.Array, 1e-5, false) },
				"SwiGLU":         func() []*mlx.Array { return []*mlx.Array{mlx.SwiGLU(x.Array, y.Array)} },
				"SwiGLU, halves": func() []*mlx.Array { return []*mlx.Array{mlx.SwiGLU(x.Array, nil)} },
				"Softmax":        func() []*mlx.Array { return []*mlx.Array{mlx.Softmax(x.Array, false, -1)} },
				"LogSumExp":      func() []*mlx.Array { return []*mlx.Array{mlx.LogSumExp(mlx.Flatten(x.Array, 0, -1), false)} },
				"Largest":        func() []*mlx.Array { return mlx.Largest(mlx.Flatten(x.Array, 0, -1), 50) },
				"RotateRows": func() []*mlx.Array {
					return mlx.RotateRows([]*mlx.Array{q, mlx.Reshape(x.Array, 37, 32, 64)}, at, freqs, false, false, 1)
				},
				"GatedDeltaRows": func() []*mlx.Array {
					return mlx.GatedDeltaRows(q, q, v, gate, gate, states, false, false, 20, 17)
				},
				"CausalConv": func() []*mlx.Array {
					return mlx.CausalConv(x.Array, taps, nil, tails, true, false, false, 20, 17)
				},
			} {
				sameOnAllThreads(t, e, fmt.Sprintf("%s of %v", name, d), f)
			}
			// A row gives the same result alone and in a batch.
			all := mlx.AddRMSNorm(x.Array, y.Array, w.Array, 1e-5, false)[1]
			row := mlx.Range(30, 31)
			one := mlx.AddRMSNorm(mlx.SliceAxis(x.Array, 0, row), mlx.SliceAxis(y.Array, 0, row), w.Array, 1e-5, false)[1]
			if !slices.Equal(mlx.SliceAxis(all, 0, row).ToBytes(), one.ToBytes()) {
				t.Errorf("a row of %v differs if computed alone", d)
			}
			// One call with two segments equals two calls.
			both := mlx.GatedDeltaRows(q, q, v, gate, gate, states, false, false, 20, 17)
			part := func(a *mlx.Array) *mlx.Array { return mlx.SliceAxis(a, 0, mlx.Range(20, mlx.End)) }
			second := mlx.GatedDeltaRows(part(q), part(q), part(v), part(gate), part(gate), states[1:], false, false, 17)
			if !slices.Equal(both[2].ToBytes(), second[1].ToBytes()) {
				t.Errorf("a segment of %v differs if computed alone", d)
			}
		}
	})
}
