// Package minimax runs model type "minimax" (MiniMax-Text-01 and M1): layers of lightning attention or of attention,
// each with experts. The residual stream is what the norms return.
//
// Reference: transformers 5.23, models/minimax/modeling_minimax.py.
package minimax

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("minimax", build) }

func build(t *mlx.Thread, c *types.MiniMax, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		mixer := normedMixer{scale: c.LinearScale}
		if c.Full[i] {
			mixer.scale = c.FullScale
			mixer.Mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope: rope, Window: int(state.Window),
			})
		} else {
			mixer.Mixer = newLightning(t, w, p+"self_attn", i, c)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     normedNetwork{nn.NewMixture(w, p+"mlp", c.Hidden, c.Mixture), c.NetworkScale},
		})
	}
	return m
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
