// Package qwen3_moe runs model type "qwen3_moe": qwen3 with routed experts instead of the MLP in some or all layers.
//
// Reference: transformers 5.23, models/qwen3_moe/modeling_qwen3_moe.py.
package qwen3_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("qwen3_moe", build) }

func build(t *mlx.Thread, c *arch.Qwen3Moe, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p+"input_layernorm", c.Hidden),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				QNorm:  norm(p+"self_attn.q_norm", c.HeadDim),
				KNorm:  norm(p+"self_attn.k_norm", c.HeadDim),
			}),
			NetworkNorm: norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, arch.Mixture{Experts: c.Experts}, c.Sparse[i]),
		})
	}
	return m
}
