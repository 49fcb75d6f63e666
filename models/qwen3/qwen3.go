// Package qwen3 runs model type "qwen3": pre-norm decoder layers of grouped-query attention with normalized queries and
// keys, and a SwiGLU MLP. Some layers may have a sliding window.
//
// Reference: transformers 5.23, models/qwen3/modeling_qwen3.py.
package qwen3

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("qwen3", build) }

func build(t *mlx.Thread, c *arch.Qwen3, w *nn.Weights) *nn.Decoder {
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
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
	}
	return m
}
