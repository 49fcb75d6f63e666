// Package ernie4_5_moe runs model type "ernie4_5_moe": pre-norm decoder layers whose rope rotates pairs
// of adjacent channels, with experts that a softmax router with a correction chooses, and shared experts.
//
// Reference: transformers 5.23, models/ernie4_5_moe/modeling_ernie4_5_moe.py.
package ernie4_5_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("ernie4_5_moe", build) }

func build(t *mlx.Thread, c *arch.Ernie45Moe, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm"), HeadBias: c.HeadBias})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Interleaved()
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
