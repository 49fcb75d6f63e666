package nn

import "github.com/ingotml/ingot/mlx"

// HeadLinear multiplies each head by a matrix of its own.
type HeadLinear struct {
	bank  *bank
	heads int
}

// NewHeadLinear takes matrices [heads, out, in], which may be packed.
func NewHeadLinear(w *Weights, matrices *Tensor) *HeadLinear {
	return &HeadLinear{bankOf(w, matrices), matrices.Array.Dim(0)}
}

// Apply maps [T, heads, in] to [T, heads, out].
func (l *HeadLinear) Apply(x *mlx.Array) *mlx.Array {
	t, rows := x.Thread(), x.Dim(0)
	if t.Info().GPU && l.bank.transposed != nil {
		return mlx.SwapAxes(mlx.MatMul(mlx.SwapAxes(x, 0, 1), l.bank.transposed), 0, 1)
	}
	of, head := make([]uint32, rows*l.heads), make([]uint32, rows*l.heads)
	for i := range of {
		of[i], head[i] = uint32(i), uint32(i%l.heads)
	}
	indices := func(list []uint32) *mlx.Array { return mlx.FromSlice(t, list, rows, l.heads) }
	y := l.bank.apply(mlx.ExpandDims(x, 2), indices(of), indices(head), false)
	return mlx.Squeeze(y, 2)
}
