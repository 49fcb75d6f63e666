package recurrent_test

import (
	"fmt"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

// Rolling back rows restores the state of a Gated DeltaNet, at its start and later, for transactions of one step and of
// several, batched with a sequence without a transaction.
func TestGatedDeltaTransactions(t *testing.T) {
	const hidden, rows = 24, 23
	d := config.GatedDelta{KeyHeads: 2, ValueHeads: 4, KeyDim: 6, ValueDim: 5, Kernel: 4}
	for _, steps := range [][]int{{5}, {1, 1, 1}, {2, 1, 3}} {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			mlxtest.Do(t, func(e *mlx.Thread) {
				_, w := newDeltaWeights(e, d, hidden)
				defer w.Free()
				block := recurrent.NewGatedDelta(w, "x", 1, d, hidden, deltaEps)
				x := mlx.RandomNormal(mlx.RandomKey(e, 78), mlx.Float32, 2, rows, hidden)
				want := runDelta(e, block, x, []int{1}, true)

				kinds := []cache.Kind{cache.None, cache.Recurrent}
				trying, plain := cache.NewSequence(kinds), cache.NewSequence(kinds)
				defer trying.Free()
				defer plain.Free()
				var got, beside []float32
				width := len(want[0]) / rows
				for round := 0; trying.Offset() < rows; round++ {
					e.Scope(func() {
						var said []float32
						trying.Begin()
						for _, n := range steps {
							at, to := trying.Offset(), plain.Offset()
							n, m := min(n, rows-at), min(2, rows-to)
							if n == 0 {
								break
							}
							b := &nn.Batch{Segments: []nn.Segment{{Seq: trying, Len: n, Pos: at}}}
							parts := []*mlx.Array{mlx.Squeeze(mlx.Slice(x, mlx.Range(0, 1), mlx.Range(at, at+n), mlx.All()), 0)}
							if m > 0 {
								b.Segments = append(b.Segments, nn.Segment{Seq: plain, Row: n, Len: m, Pos: to})
								parts = append(parts, mlx.Squeeze(mlx.Slice(x, mlx.Range(1, 2), mlx.Range(to, to+m), mlx.All()), 0))
							}
							y := block.Apply(b, mlx.Concatenate(0, parts...)).Float32s()
							said, beside = append(said, y[:n*width]...), append(beside, y[n*width:]...)
						}
						keep := min(round%4, len(said)/width)
						trying.Commit(keep)
						got = append(got, said[:keep*width]...)
					})
				}
				wantNear(t, "the sequence", got, doubles(want[0]))
				wantNear(t, "the sequence beside it", beside, doubles(want[1][:len(beside)]))
			})
		})
	}
}

func doubles(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
