// Package gpt_oss runs model type "gpt_oss": experts with biases and a clamped activation in every layer, attention
// with sinks, and sliding windows in some layers.
//
// Reference: transformers 5.23, models/gpt_oss/modeling_gpt_oss.py.
package gpt_oss

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gpt_oss", build) }

func build(t *mlx.Thread, c *arch.GptOss, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				Sinks:  true,
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMixture(w, p+"mlp", c.Hidden, c.Mixture),
		})
	}
	return m
}
