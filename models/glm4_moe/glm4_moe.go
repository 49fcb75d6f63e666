// Package glm4_moe runs model type "glm4_moe": pre-norm decoder layers whose rope rotates a part of
// each head, with experts that a sigmoid router chooses, shared experts and dense first layers.
//
// Reference: transformers 5.23, models/glm4_moe/modeling_glm4_moe.py.
package glm4_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe", build) }

func build(t *mlx.Thread, c *arch.Glm4Moe, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		options := nn.AttentionOptions{Rope: rope, Window: int(state.Window)}
		if c.HeadNorms {
			options.QNorm = norm(p+"self_attn.q_norm", c.HeadDim)
			options.KNorm = norm(p+"self_attn.k_norm", c.HeadDim)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p+"input_layernorm", c.Hidden),
			Mixer:       nn.NewAttention(w, p+"self_attn", i, c.Common, options),
			NetworkNorm: norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
