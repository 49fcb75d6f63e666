// Package llama4 runs model types "llama4_text" and the text of "llama4": pre-norm decoder layers that attend within
// chunks of the text, full ones without rope between them, and experts whose input the router scales.
//
// Reference: transformers 5.23, models/llama4/modeling_llama4.py.
package llama4

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("llama4", build) }

func build(t *mlx.Thread, c *types.Llama4, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Interleaved()
	for i, state := range c.State() {
		attention := nn.AttentionOptions{Window: int(state.Window), Chunked: state.Window > 0, NormsLast: true}
		switch {
		case !c.Rotates[i] && c.GrowthBeta > 0:
			attention.Growth = &nn.Growth{Beta: c.GrowthBeta, Context: c.GrowthContext, Shift: 1}
		case c.Rotates[i]:
			attention.Rope = rope
		}
		if c.Rotates[i] && c.QKNorm {
			attention.QNorm, attention.KNorm = nn.PlainRMSNorm(c.NormEps), nn.PlainRMSNorm(c.NormEps)
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       nn.NewAttention(w, p+"self_attn", i, c.Common, attention),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
