package qwen3_5

import "math"

// places are the rows and columns of patches on a picture's grid, in the order in which they come: blocks of merge x merge
// from left to right and top to bottom, and so within a block.
type places struct {
	rows, cols int
	row, col   []int32
}

func newPlaces(rows, cols, merge int) places {
	p := places{rows: rows, cols: cols}
	for y := 0; y < rows; y += merge {
		for x := 0; x < cols; x += merge {
			for i := range merge * merge {
				p.row = append(p.row, int32(y+i/merge))
				p.col = append(p.col, int32(x+i%merge))
			}
		}
	}
	return p
}

// positions are [2, n]: all rows, then all columns.
func (p places) positions() []int32 {
	return append(append(make([]int32, 0, 2*len(p.row)), p.row...), p.col...)
}

// corners gives, for each patch, the four places around it on a square of the given side that is stretched over the grid,
// and their shares, which sum to 1. Places are row*side + column.
func (p places) corners(side int) (ids [4][]int32, shares [4][]float32) {
	down, across := stretch(p.rows, side), stretch(p.cols, side)
	for i := range p.row {
		y, x := down[p.row[i]], across[p.col[i]]
		for k := range 4 {
			a, b := k/2, k%2
			ids[k] = append(ids[k], y.at[a]*int32(side)+x.at[b])
			shares[k] = append(shares[k], y.share[a]*x.share[b])
		}
	}
	return ids, shares
}

// between are two neighbours and the share of each.
type between struct {
	at    [2]int32
	share [2]float32
}

// stretch puts n places evenly on an axis of the given side, the first and the last at its ends. It rounds as the reference.
func stretch(n, side int) []between {
	out := make([]between, n)
	for i := range out {
		at := float32(i) * float32(side-1) / float32(max(n-1, 1))
		low := float32(math.Floor(float64(at)))
		high := at - low
		out[i] = between{[2]int32{int32(low), min(int32(low)+1, int32(side-1))}, [2]float32{1 - high, high}}
	}
	return out
}
