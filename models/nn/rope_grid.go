package nn

import "github.com/ingotml/ingot/mlx"

// grid assigns the pairs of a rope to the positions in time, height and width.
type grid struct {
	pairs       []int // number for each axis
	interleaved bool
}

// Sections assigns the pairs to the positions in time, height and width, for batches that have a Grid. If interleaved,
// pair j belongs to height if j mod 3 = 1 and j < 3*pairs[1], to width if j mod 3 = 2 and j < 3*pairs[2], and otherwise
// to time. If not, the sections are consecutive, and pairs must sum to the rope's number of pairs.
func (r *Rope) Sections(pairs [3]int, interleaved bool) *Rope {
	r.grid = &grid{pairs: pairs[:], interleaved: interleaved}
	if interleaved {
		// A configuration may list more pairs than the rope has.
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

// positions returns the positions that a batch's rows are rotated by, and the pairs of each axis.
func (r *Rope) positions(b *Batch) (at *mlx.Array, interleaved bool, sections []int) {
	if b.Grid == nil || r.grid == nil {
		return b.Positions, false, nil
	}
	return b.Grid, r.grid.interleaved, r.grid.pairs
}
