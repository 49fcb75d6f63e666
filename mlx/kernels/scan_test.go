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

// scanSizes are the sizes of a selective scan, with the lengths of its segments.
type scanSizes struct {
	groups, heads, state, dim int
	lengths                   []int
}

func (s scanSizes) rows() (n int) {
	for _, l := range s.lengths {
		n += l
	}
	return n
}

var scans = []scanSizes{
	{1, 1, 4, 1, []int{1}}, {1, 2, 13, 7, []int{2, 1, 20}}, {2, 4, 64, 38, []int{1, 1, 1}}, {2, 2, 128, 64, []int{35}},
	{1, 3, 16, 32, []int{130, 65}},
}

// stepRows returns positive numbers.
func stepRows(e *mlx.Thread, r *rand.Rand, shape ...int) testRows {
	x := normalRows(e, r, mlx.Float32, 0.5, shape...)
	v := make([]float32, len(x.v))
	for i := range v {
		v[i] = float32(math.Abs(x.v[i]))
	}
	return rowsOf(e, mlx.Float32, v, shape...)
}

// The scan of Mamba 2 equals its definition in float64, on every instruction set, and also writes its states in place.
func TestStateScan(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 9))
		for _, d := range floatTypes {
			for _, c := range scans {
				size := 1 / math.Sqrt(float64(c.state))
				q := normalRows(e, r, d, size, c.rows(), c.groups, c.state)
				k := normalRows(e, r, d, size, c.rows(), c.groups, c.state)
				v, steps := normalRows(e, r, d, 1, c.rows(), c.heads, c.dim), stepRows(e, r, c.rows(), c.heads)
				rate, skip := stepRows(e, r, c.heads), normalRows(e, r, mlx.Float32, 1, c.heads)
				down := mlx.Negative(rate.Array)
				var states []*mlx.Array
				var wantY []float64
				var wantStates [][]float64
				row := 0
				for _, n := range c.lengths {
					s := normalRows(e, r, mlx.Float32, 1, c.heads, c.dim, c.state)
					states = append(states, s.Array)
					state := slices.Clone(s.v)
					for range n {
						for h := range c.heads {
							at, step := (row*c.groups+h/(c.heads/c.groups))*c.state, steps.v[row*c.heads+h]
							for i := range c.dim {
								line, x := state[(h*c.dim+i)*c.state:][:c.state], v.v[(row*c.heads+h)*c.dim+i]
								y := skip.v[h] * x
								for j := range line {
									line[j] = line[j]*math.Exp(-step*rate.v[h]) + step*x*k.v[at+j]
									y += line[j] * q.v[at+j]
								}
								wantY = append(wantY, y)
							}
						}
						row++
					}
					wantStates = append(wantStates, state)
				}
				name := fmt.Sprintf("%v %+v", d, c)
				last := mlx.StateScan(q.Array, k.Array, v.Array, steps.Array, down, skip.Array, states, false, c.lengths...)
				constant := func(int) float64 { return 8 }
				wantClose(t, name+": outputs", last[0], wantY, 4, constant)
				for i, want := range wantStates {
					wantClose(t, name+": state", last[i+1], want, 4, constant)
				}
				wantInPlace(t, name, states, last, func(s []*mlx.Array) []*mlx.Array {
					return mlx.StateScan(q.Array, k.Array, v.Array, steps.Array, down, skip.Array, s, true, c.lengths...)
				})
				sameOnAllThreads(t, e, name, func() []*mlx.Array {
					return mlx.StateScan(q.Array, k.Array, v.Array, steps.Array, down, nil, states, false, c.lengths...)
				})
				// There are no kernels of float64: that is composed of MLX's operations, as on a GPU.
				wide := func(x testRows) *mlx.Array { return mlx.AsType(x.Array, mlx.Float64) }
				composed := mlx.StateScan(wide(q), wide(k), wide(v), steps.Array, down, skip.Array, states, false, c.lengths...)
				wantClose(t, name+": composed outputs", mlx.AsType(composed[0], mlx.Float32), wantY, 32, constant)
				for i, want := range wantStates {
					wantClose(t, name+": composed state", composed[i+1], want, 32, constant)
				}
			}
		}
	})
}

// wantInPlace checks that new states overwrite the old ones and equal those of a call that does not.
func wantInPlace(t *testing.T, name string, states, want []*mlx.Array, call func(states []*mlx.Array) []*mlx.Array) {
	t.Helper()
	copies := make([]*mlx.Array, len(states))
	for i, s := range states {
		copies[i] = mlx.Copy(s)
	}
	mlx.Eval(copies...)
	for i, x := range call(copies) {
		if !slices.Equal(x.ToBytes(), want[i].ToBytes()) {
			t.Errorf("%s: result %d differs in place", name, i)
		}
	}
	if !slices.Equal(copies[0].ToBytes(), want[1].ToBytes()) {
		t.Errorf("%s: the new state is not in the old state's memory", name)
	}
}

// The scan of Mamba and a decayed sum equal their definitions in float64, on every instruction set.
func TestChannelScan(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 10))
		for _, c := range scans {
			channels := c.heads * c.dim
			x, steps := normalRows(e, r, mlx.Float32, 1, c.rows(), channels), stepRows(e, r, c.rows(), channels)
			b := normalRows(e, r, mlx.Float32, 0.3, c.rows(), c.state)
			read := normalRows(e, r, mlx.Float32, 0.3, c.rows(), c.state)
			rate, skip := stepRows(e, r, channels, c.state), normalRows(e, r, mlx.Float32, 1, channels)
			down, decay := mlx.Negative(rate.Array), mlx.Exp(mlx.Negative(steps.Array))
			var states, sums []*mlx.Array
			var wantY, wantSums []float64
			var wantStates [][]float64
			row := 0
			for _, n := range c.lengths {
				s, first := normalRows(e, r, mlx.Float32, 1, channels, c.state), normalRows(e, r, mlx.Float32, 1, channels)
				states, sums = append(states, s.Array), append(sums, first.Array)
				state, sum := slices.Clone(s.v), slices.Clone(first.v)
				for range n {
					for i := range channels {
						step, in := steps.v[row*channels+i], x.v[row*channels+i]
						line, y := state[i*c.state:][:c.state], skip.v[i]*in
						for j := range line {
							line[j] = line[j]*math.Exp(-step*rate.v[i*c.state+j]) + step*in*b.v[row*c.state+j]
							y += line[j] * read.v[row*c.state+j]
						}
						sum[i] = sum[i]*math.Exp(-step) + in
						wantY, wantSums = append(wantY, y), append(wantSums, sum[i])
					}
					row++
				}
				wantStates = append(wantStates, state)
			}
			name := fmt.Sprintf("%+v", c)
			scan := func(s []*mlx.Array, inPlace bool) []*mlx.Array {
				return mlx.ChannelScan(x.Array, steps.Array, b.Array, read.Array, down, skip.Array, s, inPlace, c.lengths...)
			}
			last := scan(states, false)
			constant := func(int) float64 { return 8 }
			wantClose(t, name+": outputs", last[0], wantY, 4, constant)
			for i, want := range wantStates {
				wantClose(t, name+": state", last[i+1], want, 4, constant)
			}
			wantInPlace(t, name, states, last, func(s []*mlx.Array) []*mlx.Array { return scan(s, true) })
			wide := mlx.AsType(x.Array, mlx.Float64)
			composed := mlx.ChannelScan(wide, steps.Array, b.Array, read.Array, down, skip.Array, states, false, c.lengths...)
			wantClose(t, name+": composed outputs", mlx.AsType(composed[0], mlx.Float32), wantY, 32, constant)
			wantClose(t, name+": composed state", composed[1], wantStates[0], 32, constant)
			composed = mlx.DecayedSum(wide, decay, sums, false, c.lengths...)
			wantClose(t, name+": composed sums", mlx.AsType(composed[0], mlx.Float32), wantSums, 32, constant)
			sameOnAllThreads(t, e, name, func() []*mlx.Array { return scan(states, false) })

			total := mlx.DecayedSum(x.Array, decay, sums, false, c.lengths...)
			wantClose(t, name+": sums", total[0], wantSums, 4, constant)
			wantInPlace(t, name+": sums", sums, total, func(s []*mlx.Array) []*mlx.Array {
				return mlx.DecayedSum(x.Array, decay, s, true, c.lengths...)
			})
		}
	})
}

// Step sizes, decays and the gates of RG-LRU equal their definitions in float64, on every instruction set.
func TestGateKernels(t *testing.T) {
	const least, most = 0.1, 2.0
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	soft := func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 11))
		for _, d := range floatTypes {
			for _, size := range []int{1, 7, 33, 256} {
				const rows = 5
				name := fmt.Sprintf("%v of %d", d, size)
				x, input, decay := normalRows(e, r, d, 1, rows, size), normalRows(e, r, d, 2, rows, size),
					normalRows(e, r, d, 3, rows, size)
				inputBias, decayBias := normalRows(e, r, mlx.Float32, 1, size), normalRows(e, r, mlx.Float32, 1, size)
				rate := stepRows(e, r, size)
				down := mlx.Negative(rate.Array)
				positions := mlx.FromSlice(e, []int32{3, 4, 0, 1, 9}, rows)
				var steps, limited, decays, gates, out []float64
				for i, v := range x.v {
					j := i % size
					step := soft(decay.v[i] + decayBias.v[j])
					steps, limited = append(steps, step), append(limited, min(max(step, least), most))
					decays = append(decays, math.Exp(-rate.v[j]*step))
					log := -rate.v[j] * sigmoid(decay.v[i]+decayBias.v[j])
					v *= sigmoid(input.v[i] + inputBias.v[j])
					if i/size != 2 {
						v *= math.Sqrt(-math.Expm1(2 * log))
					}
					gates, out = append(gates, math.Exp(log)), append(out, v)
				}
				constant := func(int) float64 { return 4 }
				wantClose(t, "StepSizes, "+name, mlx.StepSizes(decay.Array, decayBias.Array, 0, 0), steps, 4, constant)
				wantClose(t, "limited StepSizes, "+name, mlx.StepSizes(decay.Array, decayBias.Array, least, most), limited, 4,
					constant)
				wantClose(t, "Decay, "+name, mlx.Decay(decay.Array, decayBias.Array, down), decays, 4, constant)
				parts := []*mlx.Array{inputBias.Array, decayBias.Array, down}
				unit := func(kind mlx.DType) []*mlx.Array {
					return mlx.UnitGates(mlx.AsType(x.Array, kind), mlx.AsType(input.Array, kind), mlx.AsType(decay.Array, kind),
						parts, positions)
				}
				// There are no kernels of float64: that is composed of MLX's operations, as on a GPU.
				for _, kind := range []mlx.DType{d, mlx.Float64} {
					got := unit(kind)
					wantClose(t, fmt.Sprintf("rows, computed as %v, %s", kind, name), got[0], out, 8, constant)
					wantClose(t, fmt.Sprintf("gates, computed as %v, %s", kind, name), got[1], gates, 8, constant)
				}
				sameOnAllThreads(t, e, name, func() []*mlx.Array { return unit(d) })
			}
		}
	})
}

// Step sizes and decays keep infinities, and a NaN.
func TestInfiniteSteps(t *testing.T) {
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		inf := float32(math.Inf(1))
		x := mlx.FromSlice(e, []float32{-inf, -200, 0, 200, inf, float32(math.NaN())}, 1, 6)
		zeros, ones := mlx.Zeros(e, mlx.Float32, 6), mlx.Full(e, -1, mlx.Float32, 6)
		for _, c := range []struct {
			got  *mlx.Array
			want []float64
		}{
			{mlx.StepSizes(x, zeros, 0, 0), []float64{0, 0, math.Ln2, 200, math.Inf(1), math.NaN()}},
			{mlx.StepSizes(x, zeros, 0.1, 2), []float64{0.1, 0.1, math.Ln2, 2, 2, math.NaN()}},
			{mlx.Decay(x, zeros, ones), []float64{1, 1, 0.5, 0, 0, math.NaN()}},
		} {
			for i, got := range c.got.Float32s() {
				if want := c.want[i]; math.IsNaN(want) != math.IsNaN(float64(got)) || float64(got) != want &&
					math.Abs(float64(got)-want) > 1e-6*math.Abs(want) {
					t.Errorf("of %v: %v, want %v", x.Float32s()[i], got, want)
				}
			}
		}
	})
}
