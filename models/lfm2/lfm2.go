// Package lfm2 runs model types "lfm2", "lfm2_moe" and "lfm3": layers of attention or a gated short convolution, each
// with a SwiGLU MLP, or experts in all but the first layers of lfm2_moe. In lfm3 a gate of each head multiplies
// attention's output.
//
// References: transformers 5.23, modeling_lfm2.py, modeling_lfm2_moe.py and modeling_lfm3.py below models.
package lfm2

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() {
	models.Register("lfm2", func(t *mlx.Thread, c *types.Lfm2, w *nn.Weights) *nn.Decoder {
		return build(t, c, w, convolutions{c.Full, c.Taps, c.ConvBias})
	})
	models.Register("lfm2_moe", func(t *mlx.Thread, c *types.Lfm2Moe, w *nn.Weights) *nn.Decoder {
		return build(t, c, w, convolutions{c.Full, c.Taps, c.ConvBias})
	})
	models.Register("lfm3", func(t *mlx.Thread, c *types.Lfm3, w *nn.Weights) *nn.Decoder {
		return build(t, c, w, convolutions{c.Full, c.Taps, c.ConvBias})
	})
}

type convolutions struct {
	full []bool // by layer: attention, else a convolution
	taps int
	bias bool
}

func build(t *mlx.Thread, c arch.Described, w *nn.Weights, v convolutions) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: func(b *decoders.Builder, l decoders.Layer) nn.Mixer {
			switch {
			case !v.full[l.Index]:
				return recurrent.NewShortConv(w, l.Prefix+"conv", l.Index, b.Hidden, v.taps, v.bias)
			case b.Gate != "":
				return nn.NewGatedAttention(w, l.Prefix+"self_attn", l.Index, b.Common, nn.GatedAttentionOptions{
					Gate: "." + b.Gate, PerHead: true, Rope: l.Rope, Window: l.Window,
				})
			}
			return nil
		},
	})
}
