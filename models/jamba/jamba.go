// Package jamba runs model type "jamba": layers of attention without positions or a selective scan of channels, each
// with a SwiGLU MLP or experts.
//
// Reference: transformers 5.23, models/jamba/modeling_jamba.py.
package jamba

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("jamba", build) }

func build(_ *mlx.Thread, c *types.Jamba, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if full {
			mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{})
		} else {
			mixer = recurrent.NewChannelSSM(w, p+"mamba", i, c.SSM, c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "pre_ff_layernorm"),
			Network:     nn.NewNetwork(w, p+"feed_forward", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
