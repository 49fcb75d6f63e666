// Package ministral3 runs model type "ministral3": pre-norm decoder layers of grouped-query attention, whose queries
// grow with their position, and a SwiGLU MLP.
//
// Reference: transformers 5.23, models/ministral3/modeling_ministral3.py.
package ministral3

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("ministral3", build) }

func build(t *mlx.Thread, c *arch.Ministral3, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	growth := nn.NewGrowth(c.GrowthBeta, c.GrowthContext)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				Growth: growth,
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
	}
	return m
}
