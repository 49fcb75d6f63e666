package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// Rope rotates pairs of channels, (j, j+dims/2), by an angle that grows with the position.
type Rope struct {
	periods *mlx.Array // float32 [dims/2]: positions per radian
	dims    int        // channels that rotate; those after them pass
	scale   float64    // of the rotated channels (yarn's attention factor)
}

// NewRope prepares the frequencies of a configuration for heads of dim channels.
func NewRope(t *mlx.Thread, w *Weights, r arch.Rope, dim int) *Rope {
	freqs, scale := r.Frequencies(dim)
	periods := make([]float32, len(freqs))
	for i, f := range freqs {
		periods[i] = float32(1 / f)
	}
	return &Rope{periods: w.Constant(mlx.FromSlice(t, periods)), dims: 2 * len(freqs), scale: scale}
}

// Apply rotates [T, heads, dim], each row by its own position.
func (r *Rope) Apply(b *Batch, x *mlx.Array) *mlx.Array {
	if r.scale != 1 {
		x = r.scaled(x)
	}
	// One row is a batch entry with a time axis of length 1, so that rows of many sequences may lie side by side.
	x = mlx.ExpandDims(x, 2)
	return mlx.Squeeze(mlx.RoPEOffsets(x, b.Positions, r.periods, r.dims, false, 1), 2)
}

func (r *Rope) scaled(x *mlx.Array) *mlx.Array {
	if r.dims == x.Dim(-1) {
		return mlx.MultiplyScalar(x, r.scale)
	}
	parts := mlx.Split(x, -1, r.dims)
	return mlx.Concatenate(-1, mlx.MultiplyScalar(parts[0], r.scale), parts[1])
}
