// Package bamba runs model type "bamba": layers of attention with a partial rope or a selective scan, each with a
// SwiGLU MLP.
//
// Reference: transformers 5.23, models/bamba/modeling_bamba.py.
package bamba

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("bamba", build) }

func build(t *mlx.Thread, c *types.Bamba, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if full {
			mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{Rope: rope})
		} else {
			mixer = recurrent.NewSSM(w, p+"mamba", i, c.SSM, c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "pre_ff_layernorm"),
			Network:     nn.NewMLP(w, p+"feed_forward", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
	}
	return m
}
