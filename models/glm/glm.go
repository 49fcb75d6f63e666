// Package glm runs model type "glm": pre-norm decoder layers with interleaved rope of a part of each head, and a SwiGLU
// MLP.
//
// Reference: transformers 5.23, models/glm/modeling_glm.py.
package glm

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("glm", build) }

func build(t *mlx.Thread, c *arch.Glm, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
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
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
	}
	return m
}
