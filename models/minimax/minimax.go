// Package minimax runs model type "minimax" (MiniMax-Text-01 and M1): layers of lightning attention or of attention,
// each with experts. The residual stream is what the norms return.
//
// Reference: transformers 5.23, models/minimax/modeling_minimax.py.
package minimax

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("minimax", build) }

func build(t *mlx.Thread, c *types.MiniMax, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: func(_ *decoders.Builder, l decoders.Layer) nn.Mixer {
			name := l.Prefix + "self_attn"
			if !c.Full[l.Index] {
				return normedMixer{newLightning(t, w, name, l.Index, c), c.LinearScale}
			}
			attention := nn.NewAttention(w, name, l.Index, c.Common, nn.AttentionOptions{Rope: l.Rope, Window: l.Window})
			return normedMixer{attention, c.FullScale}
		},
		Network: func(_ *decoders.Builder, l decoders.Layer) nn.Network {
			return normedNetwork{nn.NewMixture(w, l.Prefix+"mlp", c.Hidden, c.Mixture), c.NetworkScale}
		},
	})
}

// normedMixer is a mixer whose residual stream is its normalized input.
type normedMixer struct {
	nn.Mixer
	scale types.ResidualScale
}

// AddApply implements nn.Mixer.
func (m normedMixer) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	_, x = n.AddApply(x, y)
	sum, out = m.Mixer.AddApply(b, nil, x, nil)
	return scaled(sum, m.scale.Stream), scaled(out, m.scale.Output)
}

// normedNetwork is a network whose residual stream is its normalized input.
type normedNetwork struct {
	nn.Network
	scale types.ResidualScale
}

// AddApply implements nn.Network.
func (m normedNetwork) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	_, x = n.AddApply(x, y)
	sum, out = m.Network.AddApply(nil, x, nil)
	return scaled(sum, m.scale.Stream), scaled(out, m.scale.Output)
}

func scaled(x *mlx.Array, by float64) *mlx.Array {
	if by == 1 {
		return x
	}
	return mlx.MultiplyScalar(x, by)
}
