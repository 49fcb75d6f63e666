package recurrent

import (
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Apply is AddApply for rows that are already normalized.
func (l *GatedDelta) Apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	return l.apply(b, nn.Linears(x, l.in...))
}
