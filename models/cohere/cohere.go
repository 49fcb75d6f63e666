// Package cohere runs model type "cohere": decoder layers whose attention and MLP read the same LayerNorm, with
// interleaved rope. Queries and keys may have norms, with weights for each head.
//
// Reference: transformers 5.23, models/cohere/modeling_cohere.py.
package cohere

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("cohere", build) }

func build(t *mlx.Thread, c *arch.Cohere, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, false) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:       norm(c.Prefix + "norm"),
		LogitScale: c.LogitScale,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Interleaved()
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var qNorm, kNorm *nn.Norm
		if c.QKNorm {
			qNorm = nn.NewHeadNorm(w, p+"self_attn.q_norm", c.Heads, c.HeadDim, c.NormEps)
			kNorm = nn.NewHeadNorm(w, p+"self_attn.k_norm", c.KVHeads, c.HeadDim, c.NormEps)
		}
		shared := norm(p + "input_layernorm")
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: shared,
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				QNorm:  qNorm,
				KNorm:  kNorm,
			}),
			NetworkNorm: shared,
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			Parallel:    true,
		})
	}
	return m
}
