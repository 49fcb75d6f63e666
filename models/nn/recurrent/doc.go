// Package recurrent provides the shared layers whose state does not grow with the sequence: gated delta nets, selective
// scans and short convolutions. Each is an [nn.Mixer]. [nn.Recurrence] keeps their state.
package recurrent

import "github.com/ingotml/ingot/mlx"

func negativeExp(a *mlx.Array) *mlx.Array { return mlx.Negative(mlx.Exp(a)) }
