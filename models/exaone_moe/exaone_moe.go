// Package exaone_moe runs model type "exaone_moe": pre-norm decoder layers with norms of queries and
// keys, sliding layers between full ones without rope, and experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/exaone_moe/modeling_exaone_moe.py.
package exaone_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("exaone_moe", build) }

func build(t *mlx.Thread, c *types.ExaoneMoe, w *nn.Weights) *models.Decoder {
	norm := nn.NewRMSNorm(w, c.Prefix+"norm", c.Hidden, c.NormEps)
	m := &models.Decoder{Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm})}
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		options := nn.AttentionOptions{Window: int(state.Window)}
		if c.Rotates[i] {
			options.Rope = rope
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, newBlock(w, p, i, c, options, c.Mixture.Sparse[i]))
	}
	m.Next = newNext(w, c, rope, m)
	return m
}

// newBlock takes the tensors of a layer, whose names start with p.
func newBlock(w *nn.Weights, p string, layer int, c *types.ExaoneMoe, o nn.AttentionOptions, sparse bool) nn.Block {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, p+name, size, c.NormEps) }
	o.QNorm, o.KNorm = norm("self_attn.q_norm", c.HeadDim), norm("self_attn.k_norm", c.HeadDim)
	return nn.Block{
		MixerNorm:   norm("input_layernorm", c.Hidden),
		Mixer:       nn.NewAttention(w, p+"self_attn", layer, c.Common, o),
		NetworkNorm: norm("post_attention_layernorm", c.Hidden),
		Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, sparse),
	}
}

// newNext returns the multi-token prediction head, or nil if the checkpoint has none. transformers does not implement
// it and ignores its tensors. This follows the publisher's code for other inference engines.
func newNext(w *nn.Weights, c *types.ExaoneMoe, rope *nn.Rope, m *models.Decoder) *models.Next {
	if !c.HasNext() || !w.Has("mtp.fc.weight") {
		return nil
	}
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, "mtp."+name, c.Hidden, c.NormEps) }
	options := nn.AttentionOptions{Window: c.NextWindow}
	if c.Window == 0 || c.NextWindow > 0 {
		options.Rope = rope
	}
	return &models.Next{
		Model:      m,
		VectorNorm: norm("pre_fc_norm_embedding"),
		StateNorm:  norm("pre_fc_norm_hidden"),
		Join:       nn.NewLinear(w, "mtp.fc", c.Hidden, 2*c.Hidden, false),
		Block:      newBlock(w, "mtp.layers.0.", 0, c, options, false),
		Window:     c.NextWindow,
		Norm:       norm("norm"),
	}
}
