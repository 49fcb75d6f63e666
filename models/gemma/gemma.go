// Package gemma runs model type "gemma": pre-norm decoder layers with a GeGLU MLP. Norm weights are stored as offsets
// from 1, and embeddings are scaled by the square root of their size.
//
// Reference: transformers 5.23, models/gemma/modeling_gemma.py.
package gemma

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma", build) }

func build(t *mlx.Thread, c *arch.Gemma, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne() }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix + "norm"),
		EmbeddingScale: math.Sqrt(float64(c.Hidden)),
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.GELUTanhActivation),
		})
	}
	return m
}
