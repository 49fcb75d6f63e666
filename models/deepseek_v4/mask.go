package deepseek_v4

import (
	"math"

	"github.com/ingotml/ingot/mlx"
)

// windowMask returns 0 where rows from a position on see the positions from first to the last row's, and -inf where
// these are outside the window of a row.
func windowMask(t *mlx.Thread, position, rows, first, window int) *mlx.Array {
	n := position + rows - first
	mask := make([]float32, rows*n)
	for i := range rows {
		for j := range n {
			if p := first + j; p > position+i || p <= position+i-window {
				mask[i*n+j] = float32(math.Inf(-1))
			}
		}
	}
	return mlx.FromSlice(t, mask, rows, n)
}

// entryMask returns 0 where rows from a position on see the first n entries, each of rate positions, and -inf where an
// entry is of the row's future.
func entryMask(t *mlx.Thread, position, rows, rate, n int) *mlx.Array {
	seen := make([]int32, rows)
	for i := range seen {
		seen[i] = int32((position + i + 1) / rate)
	}
	if int(seen[0]) >= n {
		return mlx.Zeros(t, mlx.Float32, rows, n)
	}
	isSeen := mlx.Less(mlx.Arange(t, 0, float64(n), 1, mlx.Int32), mlx.FromSlice(t, seen, rows, 1))
	return mlx.Where(isSeen, mlx.Zeros(t, mlx.Float32, 1), mlx.Full(t, math.Inf(-1), mlx.Float32, 1))
}
