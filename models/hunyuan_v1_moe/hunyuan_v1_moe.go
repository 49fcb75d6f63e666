// Package hunyuan_v1_moe runs model type "hunyuan_v1_moe": pre-norm decoder layers of grouped-query attention,
// whose queries and keys are normalized after rope, and of experts with a shared one.
//
// Reference: transformers 5.23, models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py.
package hunyuan_v1_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("hunyuan_v1_moe", build) }

func build(t *mlx.Thread, c *arch.HunYuanMoe, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p+"input_layernorm", c.Hidden),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:      rope,
				Window:    int(state.Window),
				QNorm:     norm(p+"self_attn.query_layernorm", c.HeadDim),
				KNorm:     norm(p+"self_attn.key_layernorm", c.HeadDim),
				NormsLast: true,
			}),
			NetworkNorm: norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewMixture(w, p+"mlp", c.Hidden, c.Mixture),
		})
	}
	return m
}
