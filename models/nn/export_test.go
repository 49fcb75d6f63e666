package nn

import "github.com/ingotml/ingot/mlx"

// ApplySorted is Apply as on a GPU with many rows.
func (e *Experts) ApplySorted(x, weights, chosen *mlx.Array) *mlx.Array {
	return e.combine(e.sorted(x, chosen), weights, chosen, Shared{})
}
