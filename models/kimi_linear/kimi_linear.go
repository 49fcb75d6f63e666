// Package kimi_linear runs model type "kimi_linear": layers of Kimi Delta Attention or of latent attention without a
// rope, each with an MLP or experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/kimi_linear/modeling_kimi_linear.py.
package kimi_linear

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("kimi_linear", build) }

func build(_ *mlx.Thread, c *types.KimiLinear, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if full {
			mixer = latent.NewAttention(w, p+"self_attn", i, &c.LatentDecoder, nil)
		} else {
			mixer = recurrent.NewColumnDelta(w, p+"self_attn", i, c.Delta, c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
