package qwen3_5

import "math"

// patchGrid holds the rows and columns of an image's patches, in patch order: blocks of merge x merge from left to
// right and top to bottom, and the same order within a block.
type patchGrid struct {
	rows, cols int
	row, col   []int32
}

func newPatchGrid(rows, cols, merge int) patchGrid {
	p := patchGrid{rows: rows, cols: cols}
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

// positions returns the positions as [2, n]: all rows, then all columns.
func (p patchGrid) positions() []int32 {
	return append(append(make([]int32, 0, 2*len(p.row)), p.row...), p.col...)
}

// corners returns, for each patch, the indices row*side + column of the four nearest positions on a square of the given
// side that is stretched over the image, and their bilinear weights, which sum to 1.
func (p patchGrid) corners(side int) (ids [4][]int32, weights [4][]float32) {
	down, across := stretch(p.rows, side), stretch(p.cols, side)
	for i := range p.row {
		y, x := down[p.row[i]], across[p.col[i]]
		for k := range 4 {
			a, b := k/2, k%2
			ids[k] = append(ids[k], y.at[a]*int32(side)+x.at[b])
			weights[k] = append(weights[k], y.weight[a]*x.weight[b])
		}
	}
	return ids, weights
}

// lerp is a pair of neighbouring positions and their weights.
type lerp struct {
	at     [2]int32
	weight [2]float32
}

// stretch distributes n points evenly over an axis of side positions, including both ends. It rounds like the
// reference.
func stretch(n, side int) []lerp {
	out := make([]lerp, n)
	for i := range out {
		at := float32(i) * float32(side-1) / float32(max(n-1, 1))
		low := float32(math.Floor(float64(at)))
		high := at - low
		out[i] = lerp{[2]int32{int32(low), min(int32(low)+1, int32(side-1))}, [2]float32{1 - high, high}}
	}
	return out
}
