package nn

import "github.com/ingotml/ingot/mlx"

// ApplySorted is Apply the way of a GPU with many rows.
func (e *Experts) ApplySorted(x, weights, chosen *mlx.Array) *mlx.Array {
	return combine(e.sorted(x, chosen), weights, Shared{})
}
