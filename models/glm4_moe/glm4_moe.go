// Package glm4_moe runs model type "glm4_moe": pre-norm decoder layers whose rope rotates a part of
// each head, with experts that a sigmoid router chooses, shared experts and dense first layers.
//
// Reference: transformers 5.23, models/glm4_moe/modeling_glm4_moe.py.
package glm4_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm4_moe", build) }

func build(t *mlx.Thread, c *types.Glm4Moe, w *nn.Weights) *models.Decoder {
	norm := nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps)
	m := &models.Decoder{Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm})}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, newBlock(w, p, i, c, rope, c.Mixture.Sparse[i]))
	}
	if p := c.Next(); c.HasNext() && w.Has(p+"eh_proj.weight") {
		m.Next = models.NewNext(w, p, "shared_head.norm", c.Common, m, newBlock(w, p, 0, c, rope, true))
	}
	return m
}

// newBlock takes the tensors of a layer, whose names start with p.
func newBlock(w *nn.Weights, p string, layer int, c *types.Glm4Moe, rope *nn.Rope, sparse bool) nn.Block {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, p+name, size, c.NormEps) }
	options := nn.AttentionOptions{Rope: rope}
	if c.HeadNorms {
		options.QNorm, options.KNorm = norm("self_attn.q_norm", c.HeadDim), norm("self_attn.k_norm", c.HeadDim)
	}
	return nn.Block{
		MixerNorm:   norm("input_layernorm", c.Hidden),
		Mixer:       nn.NewAttention(w, p+"self_attn", layer, c.Common, options),
		NetworkNorm: norm("post_attention_layernorm", c.Hidden),
		Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, sparse),
	}
}
