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

// What models with several residual streams need equals its definition in float64, on every instruction set.
func TestStreamKernels(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(3, 14))
		for _, d := range floatTypes {
			for _, size := range []int{1, 7, 33, 256} {
				testMixes(t, e, r, d, size)
				testScaledRows(t, e, r, d, size)
			}
		}
	})
}

func testMixes(t *testing.T, e *mlx.Thread, r *rand.Rand, d mlx.DType, size int) {
	t.Helper()
	const rows, in, out = 5, 3, 2
	name := fmt.Sprintf("%v of %d", d, size)
	x, added := normalRows(e, r, d, 1, rows, in, size), normalRows(e, r, d, 1, rows, size)
	own, shared := normalRows(e, r, mlx.Float32, 1, rows, out, in), normalRows(e, r, mlx.Float32, 1, out, in)
	scales, each := normalRows(e, r, mlx.Float32, 1, rows, out), normalRows(e, r, mlx.Float32, 1, in)
	var mixed, sums, plain, blended []float64
	for i := range rows {
		for o := range out {
			for k := range size {
				var a, b float64
				for j := range in {
					a += own.v[(i*out+o)*in+j] * x.v[(i*in+j)*size+k]
					b += shared.v[o*in+j] * x.v[(i*in+j)*size+k]
				}
				mixed, sums = append(mixed, a), append(sums, b+scales.v[i*out+o]*added.v[i*size+k])
			}
		}
		for j := range in {
			for k := range size {
				plain = append(plain, x.v[(i*in+j)*size+k]+each.v[j]*added.v[i*size+k])
			}
		}
	}
	constant := func(int) float64 { return 8 }
	call := func() []*mlx.Array {
		return []*mlx.Array{
			mlx.MixRows(x.Array, own.Array, nil, nil),
			mlx.MixRows(x.Array, shared.Array, added.Array, scales.Array),
			mlx.MixRows(x.Array, nil, added.Array, each.Array),
		}
	}
	for i, got := range call() {
		wantClose(t, fmt.Sprintf("MixRows %d, %s", i, name), got, [][]float64{mixed, sums, plain}[i], 4, constant)
	}
	sameOnAllThreads(t, e, name, call)

	delta, by := normalRows(e, r, d, 1, rows, size), normalRows(e, r, d, 1, in, size)
	for j, got := range mlx.BlendRows(added.Array, delta.Array, by.Array) {
		blended = blended[:0]
		for i, v := range added.v {
			blended = append(blended, v+delta.v[i]*by.v[j*size+i%size])
		}
		wantClose(t, "BlendRows, "+name, got, blended, 4, constant)
	}
}

func testScaledRows(t *testing.T, e *mlx.Thread, r *rand.Rand, d mlx.DType, size int) {
	t.Helper()
	const rows, least, deviations = 5, 0.5, 0.75
	name := fmt.Sprintf("%v of %d", d, size)
	x, like := normalRows(e, r, d, 1, rows, size), normalRows(e, r, d, 3, rows, size)
	var scaled, sparse []float64
	for i := range rows {
		row, other := x.v[i*size:][:size], like.v[i*size:][:size]
		var sum, squares, wanted, spread float64
		for k, v := range row {
			sum, squares, wanted = sum+v, squares+v*v, wanted+other[k]*other[k]
		}
		n := float64(size)
		for _, v := range row {
			spread += (v - sum/n) * (v - sum/n)
		}
		factor := math.Sqrt(wanted / n / max(squares/n, least))
		for _, v := range row {
			scaled = append(scaled, v*factor)
			sparse = append(sparse, max(0, v-sum/n-deviations*math.Sqrt(spread/n)))
		}
	}
	constant := func(int) float64 { return 16 }
	wantClose(t, "RescaleRows, "+name, mlx.RescaleRows(x.Array, like.Array, least), scaled, 4, constant)
	wantClose(t, "SparseRows, "+name, mlx.SparseRows(x.Array, deviations), sparse, 4, constant)
}

// The scan of RWKV 7 equals its definition in float64, on every instruction set, and also writes its states in place.
func TestWKVScan(t *testing.T) {
	const eps = 1e-3
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, d := range floatTypes {
			for _, c := range []struct {
				heads, dim int
				lengths    []int
			}{{1, 1, []int{1}}, {2, 7, []int{2, 1, 20}}, {3, 33, []int{1, 1}}, {2, 64, []int{9}}} {
				rows := 0
				for _, n := range c.lengths {
					rows += n
				}
				var in []testRows // r, w, k, v, a
				for range 5 {
					in = append(in, normalRows(e, r, d, 1, rows, c.heads, c.dim))
				}
				var parts []*mlx.Array
				var p [5][]float64
				for i := range p {
					x := normalRows(e, r, mlx.Float32, 1, c.heads, c.dim)
					parts, p[i] = append(parts, x.Array), x.v
				}
				var states []*mlx.Array
				var wantY []float64
				var wantStates [][]float64
				row := 0
				for _, n := range c.lengths {
					s := normalRows(e, r, mlx.Float32, 0.3, c.heads, c.dim, c.dim)
					states = append(states, s.Array)
					state := slices.Clone(s.v)
					for range n {
						for h := range c.heads {
							of := func(x []float64, at int) []float64 { return x[at*c.dim:][:c.dim] }
							at := row*c.heads + h
							var inputs, own [5][]float64
							for i := range inputs {
								inputs[i], own[i] = of(in[i].v, at), of(p[i], h)
							}
							wantY = append(wantY, wkvRow(state[h*c.dim*c.dim:][:c.dim*c.dim], eps, inputs, own)...)
						}
						row++
					}
					wantStates = append(wantStates, state)
				}
				scan := func(in []testRows, kind mlx.DType, s []*mlx.Array, inPlace bool) []*mlx.Array {
					x := make([]*mlx.Array, len(in))
					for i := range in {
						x[i] = mlx.AsType(in[i].Array, kind)
					}
					return mlx.WKVScan(x[0], x[1], x[2], x[3], x[4], parts, eps, s, inPlace, c.lengths...)
				}
				name := fmt.Sprintf("%v %+v", d, c)
				last := scan(in, d, states, false)
				constant := func(int) float64 { return 32 }
				wantClose(t, name+": outputs", last[0], wantY, 64, constant)
				for i, want := range wantStates {
					wantClose(t, name+": state", last[i+1], want, 16, constant)
				}
				wantInPlace(t, name, states, last, func(s []*mlx.Array) []*mlx.Array { return scan(in, d, s, true) })
				sameOnAllThreads(t, e, name, func() []*mlx.Array { return scan(in, d, states, false) })
				// There are no kernels of float64: that is composed of MLX's operations, as on a GPU.
				composed := scan(in, mlx.Float64, states, false)
				wantClose(t, name+": composed outputs", mlx.AsType(composed[0], mlx.Float32), wantY, 256, constant)
				for i, want := range wantStates {
					wantClose(t, name+": composed state", composed[i+1], want, 64, constant)
				}
			}
		}
	})
}

// wkvRow returns the output of a row and updates the state of its head. in is r, w, k, v and a; parts is as in WKVScan.
func wkvRow(state []float64, eps float64, in, parts [5][]float64) []float64 {
	r, w, k, v, a := in[0], in[1], in[2], in[3], in[4]
	n := len(r)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	unit, key := make([]float64, n), make([]float64, n)
	var squares, bonus float64
	for j := range n {
		unit[j] = k[j] * parts[0][j]
		squares += unit[j] * unit[j]
		key[j] = k[j] * (1 + (sigmoid(a[j])-1)*parts[1][j])
		bonus += r[j] * key[j] * parts[2][j]
	}
	y := make([]float64, n)
	var mean, spread float64
	for i := range n {
		line := state[i*n:][:n]
		var removed float64
		for j := range n {
			removed += line[j] * unit[j] / max(math.Sqrt(squares), 1e-7)
		}
		for j := range n {
			u := unit[j] / max(math.Sqrt(squares), 1e-7)
			line[j] = line[j]*math.Exp(-math.Exp(-0.5)*sigmoid(w[j])) - removed*u*sigmoid(a[j]) + v[i]*key[j]
			y[i] += line[j] * r[j]
		}
		mean += y[i] / float64(n)
	}
	for i := range n {
		spread += (y[i] - mean) * (y[i] - mean) / float64(n)
	}
	for i := range n {
		y[i] = (y[i]-mean)/math.Sqrt(spread+eps)*parts[3][i] + parts[4][i] + bonus*v[i]
	}
	return y
}
