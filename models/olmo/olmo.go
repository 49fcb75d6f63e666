// Package olmo runs model type "olmo": pre-norm decoder layers whose LayerNorms have no weights, and a SwiGLU MLP.
// Queries, keys and values may be limited.
//
// Reference: transformers 5.23, models/olmo/modeling_olmo.py.
package olmo

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("olmo", build) }

func build(t *mlx.Thread, c *arch.Olmo, w *nn.Weights) *nn.Decoder {
	norm := nn.PlainLayerNorm(c.NormEps)
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm,
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				Clip:   c.Clip,
			}),
			NetworkNorm: norm,
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
	}
	return m
}
