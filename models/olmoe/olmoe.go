// Package olmoe runs model type "olmoe": pre-norm decoder layers of attention with norms of whole rows
// of queries and keys, and of experts.
//
// Reference: transformers 5.23, models/olmoe/modeling_olmoe.py.
package olmoe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("olmoe", build) }

func build(t *mlx.Thread, c *arch.Olmoe, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p+"input_layernorm", c.Hidden),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:       rope,
				Window:     int(state.Window),
				QNorm:      norm(p+"self_attn.q_norm", c.Heads*c.HeadDim),
				KNorm:      norm(p+"self_attn.k_norm", c.KVHeads*c.HeadDim),
				WholeNorms: true,
				Clip:       c.Clip,
			}),
			NetworkNorm: norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewMixture(w, p+"mlp", c.Hidden, c.Mixture),
		})
	}
	return m
}
