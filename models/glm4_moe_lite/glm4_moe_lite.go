// Package glm4_moe_lite runs model type "glm4_moe_lite" (GLM-4.7-Flash): decoder layers of multi-head latent attention
// and of experts that a sigmoid router chooses, with shared experts for all tokens.
//
// Reference: transformers 5.23, models/glm4_moe_lite/modeling_glm4_moe_lite.py.
package glm4_moe_lite

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe_lite", build) }

func build(t *mlx.Thread, c *arch.Glm4MoeLite, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.RopeDim)
	if c.Interleaved {
		rope.Neighbours()
	}
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       newLatentAttention(w, p+"self_attn", i, c, rope),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture(), c.Sparse[i]),
		})
	}
	return m
}
