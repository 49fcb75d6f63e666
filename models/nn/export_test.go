package nn

import "github.com/ingotml/ingot/mlx"

// ApplySorted is Apply the way of a GPU with many rows.
func (e *Experts) ApplySorted(x, weights, chosen *mlx.Array) *mlx.Array {
	return mlx.CombineRows(e.sorted(x, chosen), weights, nil, nil)
}

// Apply is AddApply of rows as they are.
func (l *GatedDelta) Apply(b *Batch, layer int, x *mlx.Array) *mlx.Array {
	return l.apply(b, layer, Linears(x, l.qkv, l.z, l.a, l.b))
}
