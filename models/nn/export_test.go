package nn

import "github.com/ingotml/ingot/mlx"

// ApplySorted is Apply as on a GPU with many rows.
func (e *Experts) ApplySorted(x, weights, chosen *mlx.Array) *mlx.Array {
	return e.combine(e.sorted(x, chosen), weights, chosen, Shared{})
}

// Apply is AddApply for rows that are already normalized.
func (l *GatedDelta) Apply(b *Batch, x *mlx.Array) *mlx.Array {
	return l.apply(b, Linears(x, l.in...))
}
