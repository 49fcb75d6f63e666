package nn_test

import (
	"math"
	"testing"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/models/nn"
)

// The sections determine whether a pair of an image's rows is rotated by the position in time, height or width. In a
// batch without images all pairs are rotated by the sequence position.
func TestRopeSections(t *testing.T) {
	const dim, half = 18, 7 // of the 18 channels, 14 rotate
	rope := config.Rope{Type: config.RopeDefault, Theta: 100, PartialFactor: 14.0 / dim}
	for _, c := range []struct {
		pairs       [3]int
		interleaved bool
		axes        [half]int // of each pair
	}{
		{[3]int{3, 2, 2}, true, [half]int{0, 1, 2, 0, 1, 2, 0}},
		{[3]int{11, 11, 10}, true, [half]int{0, 1, 2, 0, 1, 2, 0}}, // more than the rope has
		{[3]int{5, 1, 1}, true, [half]int{0, 1, 2, 0, 0, 0, 0}},
		{[3]int{5, 0, 2}, true, [half]int{0, 0, 2, 0, 0, 2, 0}},
		{[3]int{3, 2, 2}, false, [half]int{0, 0, 0, 1, 1, 2, 2}},
	} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			w := nn.NewWeights(mlx.Float32, nil)
			defer w.Free()
			r := nn.NewRope(e, w, rope, dim).Sections(c.pairs, c.interleaved)
			x := mlx.RandomNormal(mlx.RandomKey(e, 1), mlx.Float32, 2, 1, dim)
			in := x.Float32s()
			check := func(what string, b *nn.Batch, at func(row, axis int) float64) {
				q, k := r.Apply(b, x, x)
				for which, got := range map[string][]float32{"queries": q.Float32s(), "keys": k.Float32s()} {
					for row := range 2 {
						for j := range half {
							angle := at(row, c.axes[j]) * math.Pow(100, -2*float64(j)/14)
							a, b := float64(in[row*dim+j]), float64(in[row*dim+half+j])
							wantA, wantB := a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
							gotA, gotB := float64(got[row*dim+j]), float64(got[row*dim+half+j])
							if math.Abs(gotA-wantA) > 2e-5 || math.Abs(gotB-wantB) > 2e-5 {
								t.Errorf("%+v, %s: %s, row %d, pair %d: %v, %v, want %v, %v", c, what, which, row, j, gotA, gotB, wantA, wantB)
								return
							}
						}
						for j := 2 * half; j < dim; j++ {
							if got[row*dim+j] != in[row*dim+j] {
								t.Errorf("%+v, %s: %s, row %d, channel %d is not rotated but changed", c, what, which, row, j)
							}
						}
					}
				}
			}
			positions := mlx.FromSlice(e, []int32{4, 9})
			check("text", &nn.Batch{Positions: positions}, func(row, _ int) float64 { return []float64{4, 9}[row] })
			grid := []int32{4, 5, 6, 8, 10, 13}
			pictures := &nn.Batch{Positions: positions, Grid: mlx.FromSlice(e, grid, 3, 2)}
			check("pictures", pictures, func(row, axis int) float64 { return float64(grid[2*axis+row]) })
		})
	}
}
