package recurrent_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

// deltaWeights are the tensors of a Gated DeltaNet, also in float64.
type deltaWeights struct {
	shape  config.GatedDelta
	hidden int
	values map[string][]float64
}

const deltaEps = 1e-3 // large enough to make a difference

func newDeltaWeights(e *mlx.Thread, d config.GatedDelta, hidden int) (deltaWeights, *nn.Weights) {
	x, tensors := deltaWeights{d, hidden, map[string][]float64{}}, map[string]*nn.Tensor{}
	add := func(name string, shape ...int) {
		a := mlx.RandomNormal(mlx.RandomKey(e, uint64(len(tensors))), mlx.Float32, shape...)
		tensors["x."+name] = &nn.Tensor{Array: mlx.Keep(a)}
		for _, v := range a.Float32s() {
			x.values[name] = append(x.values[name], float64(v))
		}
	}
	channels := 2*d.Keys() + d.Values()
	add("in_proj_qkv.weight", channels, hidden)
	add("in_proj_z.weight", d.Values(), hidden)
	add("in_proj_a.weight", d.ValueHeads, hidden)
	add("in_proj_b.weight", d.ValueHeads, hidden)
	add("conv1d.weight", channels, 1, d.Kernel)
	add("A_log", d.ValueHeads)
	add("dt_bias", d.ValueHeads)
	add("norm.weight", d.ValueDim)
	add("out_proj.weight", hidden, d.Values())
	return x, nn.NewWeights(mlx.Float32, tensors)
}

// apply is a reference implementation of the layer for one sequence.
func (w deltaWeights) apply(rows [][]float64) (out []float64) {
	d := w.shape
	project := func(name string, x []float64) []float64 {
		m, y := w.values[name], make([]float64, len(w.values[name])/len(x))
		for i := range y {
			for j := range x {
				y[i] += m[i*len(x)+j] * x[j]
			}
		}
		return y
	}
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	unit := func(x []float64) []float64 {
		sum, y := 1e-6, make([]float64, len(x))
		for _, v := range x {
			sum += v * v
		}
		for i := range x {
			y[i] = x[i] / math.Sqrt(sum)
		}
		return y
	}
	var seen [][]float64
	state := make([]float64, d.ValueHeads*d.ValueDim*d.KeyDim)
	for _, row := range rows {
		seen = append(seen, project("in_proj_qkv.weight", row))
		mixed := make([]float64, len(seen[0]))
		for c := range mixed {
			for tap := range d.Kernel {
				if at := len(seen) - d.Kernel + tap; at >= 0 {
					mixed[c] += w.values["conv1d.weight"][c*d.Kernel+tap] * seen[at][c]
				}
			}
			mixed[c] = silu(mixed[c])
		}
		z, a, b := project("in_proj_z.weight", row), project("in_proj_a.weight", row), project("in_proj_b.weight", row)
		said := make([]float64, d.Values())
		for h := range d.ValueHeads {
			from := h / (d.ValueHeads / d.KeyHeads) * d.KeyDim
			q, k := unit(mixed[from:][:d.KeyDim]), unit(mixed[d.Keys()+from:][:d.KeyDim])
			gate := math.Exp(-math.Exp(w.values["A_log"][h]) * math.Log1p(math.Exp(a[h]+w.values["dt_bias"][h])))
			y := said[h*d.ValueDim:][:d.ValueDim]
			squares := 0.0
			for i := range y {
				line := state[(h*d.ValueDim+i)*d.KeyDim:][:d.KeyDim]
				remembered := 0.0
				for j := range line {
					line[j] *= gate
					remembered += line[j] * k[j]
				}
				change := (mixed[2*d.Keys()+h*d.ValueDim+i] - remembered) / (1 + math.Exp(-b[h]))
				for j := range line {
					line[j] += change * k[j]
					y[i] += line[j] * q[j] / math.Sqrt(float64(d.KeyDim))
				}
				squares += y[i] * y[i]
			}
			for i := range y {
				y[i] *= w.values["norm.weight"][i] / math.Sqrt(squares/float64(len(y))+deltaEps) * silu(z[h*d.ValueDim+i])
			}
		}
		out = append(out, project("out_proj.weight", said)...)
	}
	return out
}

// A Gated DeltaNet matches its reference implementation for any division of a sequence into chunks: at once, one by
// one, in chunks shorter and longer than the convolution, and packed with another sequence.
func TestGatedDelta(t *testing.T) {
	const hidden, rows = 24, 23
	for _, d := range []config.GatedDelta{
		{KeyHeads: 2, ValueHeads: 4, KeyDim: 6, ValueDim: 5, Kernel: 4},
		{KeyHeads: 3, ValueHeads: 3, KeyDim: 8, ValueDim: 16, Kernel: 2},
		{KeyHeads: 1, ValueHeads: 2, KeyDim: 4, ValueDim: 4, Kernel: 8},
	} {
		for _, pieces := range [][]int{{rows}, {1}, {2, 3, 1, 7}} {
			for _, other := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v, %v rows, beside another %v", d, pieces, other), func(t *testing.T) {
					mlxtest.Do(t, func(e *mlx.Thread) {
						weights, w := newDeltaWeights(e, d, hidden)
						defer w.Free()
						block := recurrent.NewGatedDelta(w, "x", 1, d, hidden, deltaEps)
						if err := w.Err(); err != nil {
							t.Error(err)
							return
						}
						x := mlx.RandomNormal(mlx.RandomKey(e, 77), mlx.Float32, 2, rows, hidden)
						var want [2][]float64
						for s, all := 0, x.Float32s(); s < 2; s++ {
							var seq [][]float64
							for r := range rows {
								row := make([]float64, hidden)
								for i := range row {
									row[i] = float64(all[(s*rows+r)*hidden+i])
								}
								seq = append(seq, row)
							}
							want[s] = weights.apply(seq)
						}
						got := runDelta(e, block, x, pieces, other)
						for s := range got {
							wantNear(t, fmt.Sprintf("sequence %d", s), got[s], want[s])
						}
					})
				})
			}
		}
	}
}

// runDelta applies the block to the rows of x [sequences, rows, hidden]: the first sequence in chunks of the given
// sizes, in turn; the other, if requested, in the same batches in chunks of 2.
func runDelta(e *mlx.Thread, block *recurrent.GatedDelta, x *mlx.Array, pieces []int, other bool) [][]float32 {
	count := 1
	if other {
		count = 2
	}
	rows := x.Dim(1)
	out := make([][]float32, count)
	var seqs []*cache.Sequence
	for range count {
		s := cache.NewSequence([]cache.Kind{cache.None, cache.Recurrent})
		defer s.Free()
		seqs = append(seqs, s)
	}
	for step := 0; seqs[0].Offset() < rows || other && seqs[1].Offset() < rows; step++ {
		e.Scope(func() {
			b := &nn.Batch{}
			var parts []*mlx.Array
			row := 0
			for s, seq := range seqs {
				n := 2
				if s == 0 {
					n = pieces[step%len(pieces)]
				}
				at := seq.Offset()
				if n = min(n, rows-at); n == 0 {
					continue
				}
				b.Segments = append(b.Segments, nn.Segment{Seq: seq, Row: row, Len: n, Pos: at})
				parts = append(parts, mlx.Squeeze(mlx.Slice(x, mlx.Range(s, s+1), mlx.Range(at, at+n), mlx.All()), 0))
				row += n
			}
			y := block.Apply(b, mlx.Concatenate(0, parts...)).Float32s()
			width := len(y) / row
			for _, seg := range b.Segments {
				for s, seq := range seqs {
					if seg.Seq == seq {
						out[s] = append(out[s], y[seg.Row*width:][:seg.Len*width]...)
					}
				}
			}
		})
	}
	return out
}

func wantNear(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	size := 0.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= 2e-5*size) {
			t.Errorf("%s: value %d is %v, want %v (the largest is %v)", what, i, got[i], want[i], size)
			return
		}
	}
}

// Sequences without a recurrent state are rejected, and missing tensors are reported by name.
func TestGatedDeltaNeedsItsState(t *testing.T) {
	d := config.GatedDelta{KeyHeads: 1, ValueHeads: 1, KeyDim: 4, ValueDim: 4, Kernel: 4}
	mlxtest.Do(t, func(e *mlx.Thread) {
		_, w := newDeltaWeights(e, d, 8)
		defer w.Free()
		block := recurrent.NewGatedDelta(w, "x", 0, d, 8, deltaEps)
		seq := cache.NewSequence([]cache.Kind{cache.Full})
		b := &nn.Batch{Segments: []nn.Segment{{Seq: seq, Len: 1}}}
		err := e.Within(func() error { block.Apply(b, mlx.Zeros(e, mlx.Float32, 1, 8)); return nil })
		if err == nil || !strings.Contains(err.Error(), "layer 0 has no recurrent state") {
			t.Errorf("a layer with a KV cache: %v", err)
		}
		empty := nn.NewWeights(mlx.Float32, nil)
		recurrent.NewGatedDelta(empty, "x", 0, d, 8, deltaEps)
		if err := empty.Err(); err == nil || !strings.Contains(err.Error(), "x.in_proj_qkv.weight is missing") {
			t.Errorf("without tensors: %v", err)
		}
	})
}
