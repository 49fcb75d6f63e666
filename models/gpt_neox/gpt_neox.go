// Package gpt_neox runs model type "gpt_neox": decoder layers of attention with a rope that rotates a part of each
// head, and a plain MLP. Each has a LayerNorm; usually both read the layer's input.
//
// Reference: transformers 5.23, models/gpt_neox/modeling_gpt_neox.py.
package gpt_neox

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gpt_neox", build) }

func build(t *mlx.Thread, c *arch.GPTNeoX, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{Rope: rope}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network: nn.NewPlainMLP(w, p+"mlp.up_proj", p+"mlp.down_proj", c.Hidden, c.Intermediate, c.MLPBias,
				nn.ActivationOf(c.Activation)),
			Parallel: c.Parallel,
		})
	}
	return m
}
