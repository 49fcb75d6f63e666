package nn

import "github.com/ingotml/ingot/mlx"

// grid divides the pairs of a rope among the positions in time, height and width.
type grid struct {
	pairs       []int // of each
	interleaved bool
}

// Sections divides the pairs among positions in time, height and width, where a batch has them: interleaved, pair j is
// height's where j mod 3 = 1 and j < 3*pairs[1], width's where j mod 3 = 2 and j < 3*pairs[2], else time's. Otherwise they
// come one after the other, and must be as many as the rope has.
func (r *Rope) Sections(pairs [3]int, interleaved bool) *Rope {
	r.grid = &grid{pairs: pairs[:], interleaved: interleaved}
	if interleaved {
		// A configuration may say more than the rope has.
		count := make([]int, 3)
		for j := range r.freqs.Dim(0) {
			of := j % 3
			if j >= 3*pairs[of] {
				of = 0
			}
			count[of]++
		}
		r.grid.pairs = count
	}
	return r
}

// positions are those that a batch's rows turn by, and how the pairs are divided among them.
func (r *Rope) positions(b *Batch) (at *mlx.Array, interleaved bool, sections []int) {
	if b.Grid == nil || r.grid == nil {
		return b.Positions, false, nil
	}
	return b.Grid, r.grid.interleaved, r.grid.pairs
}
