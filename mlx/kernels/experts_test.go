package kernels_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// chosenExperts is a reference implementation of ChooseExperts for one row.
func chosenExperts(scores, correction []float64, k, groups, topGroups, groupBest int, sigmoid, sumToOne bool,
	scale float64) (weights []float64, chosen []int) {
	p := slices.Clone(scores)
	total := 0.0
	for i, v := range scores {
		if sigmoid {
			p[i] = 1 / (1 + math.Exp(-v))
		} else {
			p[i] = math.Exp(v)
			total += p[i]
		}
	}
	for i := range p {
		if !sigmoid {
			p[i] /= total
		}
	}
	key := slices.Clone(p)
	for i := range correction {
		key[i] += correction[i]
	}
	size := len(p) / groups
	order := make([]int, groups)
	sums := make([]float64, groups)
	for g := range groups {
		order[g] = g
		if topGroups < groups {
			of := slices.Sorted(slices.Values(key[g*size : (g+1)*size]))
			for _, v := range of[size-groupBest:] {
				sums[g] += v
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	for _, g := range order[:topGroups] {
		for i := range size {
			chosen = append(chosen, g*size+i)
		}
	}
	slices.SortFunc(chosen, func(a, b int) int { return cmp.Or(cmp.Compare(key[b], key[a]), cmp.Compare(a, b)) })
	chosen = chosen[:k]
	total = 0
	for _, i := range chosen {
		total += p[i]
	}
	for _, i := range chosen {
		if sumToOne {
			weights = append(weights, p[i]/total*scale)
		} else {
			weights = append(weights, p[i]*scale)
		}
	}
	return weights, chosen
}

func TestChooseExperts(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(3, 14))
		for _, d := range append(slices.Clone(floatTypes), mlx.Float64) { // computed by MLX's operations
			for _, c := range []struct{ rows, experts, k, groups, top, best int }{
				{1, 1, 1, 1, 1, 2}, {1, 128, 8, 1, 1, 2}, {3, 7, 7, 1, 1, 2}, {5, 12, 3, 4, 2, 2}, {130, 64, 4, 8, 3, 2},
				{2, 6, 3, 3, 3, 2}, {1, 513, 9, 1, 1, 1}, {5, 12, 3, 4, 2, 1}, {130, 64, 4, 8, 3, 1}, {3, 4, 2, 4, 2, 1},
			} {
				for i := range 8 {
					sigmoid, sumToOne, corrected := i&1 > 0, i&2 > 0, i&4 > 0
					scoring := mlx.SoftmaxOfScores
					if sigmoid {
						scoring = mlx.SigmoidsOfScores
					}
					name := fmt.Sprintf("%v, %+v, sigmoid %v, sum to one %v, corrected %v", d, c, sigmoid, sumToOne, corrected)
					values := make([]float32, c.rows*c.experts)
					for i := range values {
						values[i] = float32(r.NormFloat64())
					}
					scores := mlx.AsType(mlx.FromSlice(e, values, c.rows, c.experts), d)
					var correction *mlx.Array
					add := make([]float64, c.experts)
					if corrected {
						f := make([]float32, c.experts)
						for i := range f {
							f[i] = float32(r.NormFloat64()) / 4
							add[i] = float64(f[i])
						}
						correction = mlx.FromSlice(e, f)
					}
					both := mlx.ChooseExperts(scores, correction, nil, c.k, c.groups, c.top, c.best, scoring, sumToOne, 1.5)
					weights, chosen := both[0].Float32s(), mlx.ToSlice[uint32](both[1])
					of := mlx.AsType(scores, mlx.Float32).Float32s()
					for row := range c.rows {
						own := make([]float64, c.experts)
						for i := range own {
							own[i] = float64(of[row*c.experts+i])
						}
						want, at := chosenExperts(own, add, c.k, c.groups, c.top, c.best, sigmoid, sumToOne, 1.5)
						for i := range want {
							w, n := float64(weights[row*c.k+i]), int(chosen[row*c.k+i])
							// Experts whose scores differ only by rounding may swap places.
							if math.Abs(w-want[i]) > 1e-5*max(want[i], 1e-3) && n == at[i] || n != at[i] &&
								math.Abs(own[n]+add[n]-own[at[i]]-add[at[i]]) > 1e-5 {
								t.Errorf("%s: row %d, choice %d: expert %d with weight %v, want %d with weight %v",
									name, row, i, n, w, at[i], want[i])
								return
							}
						}
					}
				}
			}
		}
	})
}

// A router that chooses two experts, one after the other, as the reference implementation does: by our kernel, and by
// MLX's operations for float64.
func TestSparseMixer(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(6, 2))
		for _, d := range append(slices.Clone(floatTypes), mlx.Float64) {
			for _, shape := range [][2]int{{1, 2}, {3, 5}, {140, 16}} {
				rows, experts, jitter := shape[0], shape[1], 0.2
				values := make([]float32, rows*experts)
				for i := range values {
					values[i] = float32(r.IntN(9)-4) / 2 // with equal scores, zeros and negative ones
				}
				both := mlx.SparseMixer(mlx.AsType(mlx.FromSlice(e, values, rows, experts), d), jitter)
				weights, chosen := both[0].Float32s(), mlx.ToSlice[uint32](both[1])
				for row := range rows {
					own := values[row*experts : (row+1)*experts]
					first := slices.Index(own, slices.Max(own))
					for i := range 2 {
						at, weight := mixed(own, []int{-1, first}[i], jitter)
						if w, n := float64(weights[2*row+i]), int(chosen[2*row+i]); n != at || math.Abs(w-weight) > 1e-6 {
							t.Errorf("%v, scores %v, choice %d: expert %d with weight %v, want %d with %v", d, own, i, n, w, at, weight)
							return
						}
					}
				}
			}
		}
	})
}

// mixed returns the best expert but one, and its share of the experts that are close to it.
func mixed(scores []float32, but int, jitter float64) (best int, weight float64) {
	best = -1
	for i, s := range scores {
		if i != but && (best < 0 || s > scores[best]) {
			best = i
		}
	}
	total, top := 0.0, float64(scores[best])
	for i, s := range scores {
		far := (top-float64(s))/max(math.Abs(float64(s)), top) > 2*jitter
		if i != but && !far {
			total += math.Exp(float64(s) - top)
		}
	}
	return best, 1 / total
}

func TestCombineRows(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(2, 72))
		for _, d := range append(slices.Clone(floatTypes), mlx.Float64) {
			for _, c := range [][3]int{{1, 1, 1}, {1, 8, 2048}, {3, 2, 513}, {70, 3, 40}} {
				rows, k, n := c[0], c[1], c[2]
				values := func(count int) []float32 {
					v := make([]float32, count)
					for i := range v {
						v[i] = float32(r.NormFloat64())
					}
					return v
				}
				make4 := func(shape ...int) (*mlx.Array, []float32) {
					count := 1
					for _, s := range shape {
						count *= s
					}
					a := mlx.AsType(mlx.FromSlice(e, values(count), shape...), d)
					return a, mlx.AsType(a, mlx.Float32).Float32s()
				}
				x, xs := make4(rows, k, 1, n)
				added, adds := make4(rows, n)
				gate, gates := make4(rows, 1)
				ws := values(rows * k)
				weights := mlx.FromSlice(e, ws, rows, k)
				bias, biases := make4(3, n)
				of := make([]uint32, rows*k)
				for i := range of {
					of[i] = r.Uint32N(3)
				}
				chosen := mlx.FromSlice(e, of, rows, k)
				for i, y := range []*mlx.Array{
					mlx.CombineRows(x, weights, nil, nil, nil, nil),
					mlx.CombineRows(mlx.Reshape(x, rows, k, n), weights, nil, nil, added, nil),
					mlx.CombineRows(x, weights, nil, nil, added, gate),
					mlx.CombineRows(x, weights, bias, chosen, added, gate),
				} {
					if y.DType() != d {
						t.Errorf("the result of %v is %v", d, y.DType())
					}
					got := mlx.AsType(y, mlx.Float32).Float32s()
					for j := range got {
						row, want, size := j/n, 0.0, 1e-6
						for e := range k {
							v := float64(xs[(row*k+e)*n+j%n])
							if i == 3 {
								v += float64(biases[int(of[row*k+e])*n+j%n])
							}
							v *= float64(ws[row*k+e])
							want += v
							size += math.Abs(v)
						}
						if i > 0 {
							by := 1.0
							if i >= 2 {
								by = 1 / (1 + math.Exp(-float64(gates[row])))
							}
							want += by * float64(adds[j])
							size += math.Abs(float64(adds[j]))
						}
						unit := map[mlx.DType]float64{mlx.BFloat16: 0x1p-8, mlx.Float16: 0x1p-11}[d]
						if !(math.Abs(float64(got[j])-want) <= 1e-6*size+unit*math.Abs(want)) {
							t.Errorf("%v %v, form %d: element %d is %v, want %v", d, c, i, j, got[j], want)
							return
						}
					}
				}
			}
		}
	})
}

// The clamped SwiGLU equals its formula in float64 on every instruction set, with and without biases. Both limits are
// reached.
func TestClampedSwiGLU(t *testing.T) {
	const alpha, limit, banks = 1.702, 1.25, 3
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(4, 31))
		for _, d := range append(slices.Clone(floatTypes), mlx.Float64) {
			for _, c := range [][2]int{{1, 1}, {3, 37}, {70, 16}, {2, 2880}} {
				rows, n := c[0], c[1]
				random := func(shape ...int) (*mlx.Array, []float32) {
					v := make([]float32, shape[0]*shape[1])
					for i := range v {
						v[i] = float32(r.NormFloat64() * 2)
					}
					a := mlx.AsType(mlx.FromSlice(e, v, shape...), d)
					return a, mlx.AsType(a, mlx.Float32).Float32s()
				}
				x, xs := random(rows, 2*n)
				bias, biases := random(banks, 2*n)
				of := make([]uint32, rows)
				for i := range of {
					of[i] = r.Uint32N(banks)
				}
				for _, with := range []bool{false, true} {
					shift := 0.0
					y := mlx.ClampedSwiGLU(x, nil, nil, alpha, limit, shift)
					if with {
						shift = 1
						y = mlx.ClampedSwiGLU(x, bias, mlx.FromSlice(e, of, rows), alpha, limit, shift)
					}
					if y.DType() != d || !slices.Equal(y.Shape(), []int{rows, n}) {
						t.Errorf("%v %v of %v", y.DType(), y.Shape(), d)
					}
					for i, got := range mlx.AsType(y, mlx.Float32).Float32s() {
						row, at := i/n, i%n
						g, u := float64(xs[row*2*n+at]), float64(xs[row*2*n+n+at])
						if with {
							g += float64(biases[int(of[row])*2*n+at])
							u += float64(biases[int(of[row])*2*n+n+at])
						}
						g, u = min(g, limit), max(-limit, min(u, limit))
						want := (u + shift) * g / (1 + math.Exp(-alpha*g))
						unit := map[mlx.DType]float64{mlx.BFloat16: 0x1p-8, mlx.Float16: 0x1p-11}[d]
						if !(math.Abs(float64(got)-want) <= 2e-6+unit*math.Abs(want)) {
							t.Errorf("%v %v, biases %v: element %d is %v, want %v", d, c, with, i, got, want)
							return
						}
					}
				}
			}
		}
	})
}

// A choice is divided into the experts of a rank and others, which get weight 0 and stand for an own expert.
func TestOwnExperts(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		weights := mlx.FromSlice(e, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, 3)
		chosen := mlx.FromSlice(e, []uint32{5, 2, 9, 4, 3, 5, 0, 1, 7}, 3, 3)
		own := mlx.OwnExperts(weights, chosen, 3, 3) // 3, 4 and 5
		if got, want := own[0].Float32s(), []float32{1, 0, 0, 4, 5, 6, 0, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("weights %v, want %v", got, want)
		}
		if got, want := mlx.ToSlice[uint32](own[1]), []uint32{2, 2, 2, 1, 0, 2, 2, 2, 2}; !slices.Equal(got, want) {
			t.Errorf("experts %v, want %v", got, want)
		}
	})
}
