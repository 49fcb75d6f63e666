// Package granite runs model type "granite": Llama with multipliers of embeddings, attention scores, residuals and
// logits.
//
// Reference: transformers 5.23, models/granite/modeling_granite.py.
package granite

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("granite", build) }

func build(t *mlx.Thread, c *arch.Granite, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix + "norm"),
		EmbeddingScale: c.EmbeddingScale,
		LogitScale:     1 / c.LogitDivisor,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				Scale:  c.AttentionScale,
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			Scale:       c.ResidualScale,
		})
	}
	return m
}
