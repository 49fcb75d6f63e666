package nn

import "github.com/ingotml/ingot/mlx"

// ApplySorted is Apply as on a GPU with many rows.
func (e *Experts) ApplySorted(x, weights, chosen *mlx.Array) *mlx.Array {
	return e.combine(e.sorted(x, chosen), weights, chosen, Shared{})
}

// Prepared returns how many groups of layers were prepared.
func (w *Weights) Prepared() int { return len(w.groups) }
