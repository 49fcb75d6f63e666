// Package lfm2 runs model type "lfm2": layers of attention or a gated short convolution, each with a SwiGLU MLP.
//
// Reference: transformers 5.23, models/lfm2/modeling_lfm2.py.
package lfm2

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() {
	models.Register("lfm2", func(t *mlx.Thread, c *types.Lfm2, w *nn.Weights) *nn.Decoder {
		return New(t, c, w, func(name string, _ int) nn.Network {
			return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
		})
	})
}

// New builds a model with networks from the caller, made of the tensors whose names start with name.
func New(t *mlx.Thread, c *types.Lfm2, w *nn.Weights, network func(name string, layer int) nn.Network) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm(), c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if full {
			mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:  rope,
				QNorm: norm(p+"self_attn.q_layernorm", c.HeadDim),
				KNorm: norm(p+"self_attn.k_layernorm", c.HeadDim),
			})
		} else {
			mixer = recurrent.NewShortConv(w, p+"conv", i, c.Hidden, c.Taps, c.ConvBias)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p+"operator_norm", c.Hidden),
			Mixer:       mixer,
			NetworkNorm: norm(p+"ffn_norm", c.Hidden),
			Network:     network(p+"feed_forward", i),
		})
	}
	return m
}
