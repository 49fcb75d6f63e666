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

func TestPickKernels(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(6, 6))
		ids := mlx.FromSlice(e, []int32{4, 0, -1, 2, 99, -99})
		inside := mlx.FromSlice(e, []int32{4, 0, 4, 2, 4, 0})
		for _, d := range floatTypes {
			table := normalRows(e, r, d, 3, 5, 384)
			if !slices.Equal(mlx.TableRows(table.Array, ids, 1).ToBytes(), mlx.Take(table.Array, inside, 0).ToBytes()) {
				t.Errorf("%v: rows differ from Take", d)
			}
			// A part of a table has the rows of its own, and zeros for others.
			whole := mlx.FromSlice(e, []int32{6, 1, 0, 4, 7, -1})
			zeros := mlx.FromSlice(e, []bool{false, true, true, false, true, true}, 6, 1)
			own := func(rows *mlx.Array) []byte { return mlx.Where(zeros, mlx.ZerosLike(rows), rows).ToBytes() }
			part := mlx.FromSlice(e, []int32{4, 0, 0, 2, 0, 0}) // in the table that begins at 2
			if !slices.Equal(mlx.OwnTableRows(table.Array, whole, 2, 3).ToBytes(), own(mlx.TableRows(table.Array, part, 3))) {
				t.Errorf("%v: the rows of a part", d)
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
							got = mlx.OwnPackedTableRows(parts[0], parts[1], parts[2], whole, 2, scale, group, bits, f.mode, d)
							all := mlx.PackedTableRows(parts[0], parts[1], parts[2], part, scale, group, bits, f.mode, d)
							if !slices.Equal(got.ToBytes(), own(all)) {
								t.Errorf("%v, format %v, group %d, %d bits: the rows of a part", d, f.mode, group, bits)
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
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
		r := rand.New(rand.NewPCG(7, 7))
		for _, d := range floatTypes {
			for _, c := range []struct {
				keyHeads, heads, keyDim, valueDim int
				lengths                           []int
				columns                           bool // each column of a state has a gate
			}{
				{1, 1, 4, 1, []int{1}, false}, {1, 2, 13, 7, []int{2, 1, 20}, false}, {2, 4, 64, 38, []int{1, 1, 1}, false},
				{2, 2, 128, 128, []int{35}, false}, {1, 2, 13, 7, []int{2, 1, 20}, true}, {2, 2, 64, 38, []int{35}, true},
			} {
				rows := 0
				for _, n := range c.lengths {
					rows += n
				}
				size := 1 / math.Sqrt(float64(c.keyDim))
				q, k := normalRows(e, r, d, size, rows, c.keyHeads, c.keyDim), normalRows(e, r, d, size, rows, c.keyHeads, c.keyDim)
				v := normalRows(e, r, d, 1, rows, c.heads, c.valueDim)
				perHead, gateShape := 1, []int{rows, c.heads}
				if c.columns {
					perHead, gateShape = c.keyDim, append(gateShape, c.keyDim)
				}
				gates, beta := mlx.Sigmoid(normalRows(e, r, mlx.Float32, 2, gateShape...).Array),
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
									line[j] *= g[(row*c.heads+h)*perHead+j%perHead]
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
				if c.columns && d != mlx.Float32 {
					// There are no kernels of several types: that is composed of MLX's operations, as on a GPU.
					wide := mlx.AsType(q.Array, mlx.Float32)
					composed := mlx.GatedDeltaRows(wide, k.Array, v.Array, gates, beta, states, false, false, c.lengths...)
					wantClose(t, name+": composed outputs", composed[0], wantY, 64, constantScale)
					every := mlx.GatedDeltaRows(wide, k.Array, v.Array, gates, beta, states, true, false, c.lengths...)
					for i := range states {
						wantClose(t, name+": composed state", composed[i+1], wantStates[i], 64, constantScale)
						wantClose(t, name+": every composed state", every[i+1], wantEvery[i], 64, constantScale)
					}
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
	mlxtest.OnEveryISA(t, func(t *testing.T, e *mlx.Thread) {
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
