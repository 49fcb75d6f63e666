package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// Rope rotates pairs of channels, (j, j+n), by an angle that grows with the position.
type Rope struct {
	freqs *mlx.Array // float32 [n]: radians per position; channels after the first 2n pass
	scale float64    // of the rotated channels (yarn's attention factor)
}

// NewRope prepares the frequencies of a configuration for heads of dim channels.
func NewRope(t *mlx.Thread, w *Weights, r arch.Rope, dim int) *Rope {
	freqs, scale := r.Frequencies(dim)
	radians := make([]float32, len(freqs))
	for i, f := range freqs {
		radians[i] = float32(f)
	}
	return &Rope{freqs: w.Constant(mlx.FromSlice(t, radians)), scale: scale}
}

// Apply rotates queries and keys [T, heads, dim], each row by its own position.
func (r *Rope) Apply(b *Batch, q, k *mlx.Array) (rotatedQ, rotatedK *mlx.Array) {
	both := mlx.RotateRows([]*mlx.Array{q, k}, b.Positions, r.freqs, false, false, r.scale)
	return both[0], both[1]
}
