// Package kimi_linear runs model type "kimi_linear": layers of Kimi Delta Attention or of latent attention without a
// rope, each with an MLP or experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/kimi_linear/modeling_kimi_linear.py.
package kimi_linear

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/latent"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("kimi_linear", build) }

func build(t *mlx.Thread, c *types.KimiLinear, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: func(_ *decoders.Builder, l decoders.Layer) nn.Mixer {
			if c.Full[l.Index] {
				return latent.NewAttention(w, l.Prefix+"self_attn", l.Index, &c.LatentDecoder, nil)
			}
			return recurrent.NewColumnDelta(w, l.Prefix+"self_attn", l.Index, c.Delta, c.Hidden, c.NormEps)
		},
	})
}
