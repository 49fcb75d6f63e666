// Package phimoe runs model type "phimoe": pre-norm decoder layers with LayerNorms, biases and experts of a SparseMixer
// router.
//
// Reference: transformers 5.23, models/phimoe/modeling_phimoe.py. For texts beyond the trained context it scales the
// rope by short_factor, where the publisher's code and this package use long_factor.
package phimoe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("phimoe", build) }

func build(t *mlx.Thread, c *arch.Phimoe, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm"), HeadBias: c.HeadBias})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMixture(w, p+"mlp", c.Hidden, c.Mixture),
		})
	}
	return m
}
