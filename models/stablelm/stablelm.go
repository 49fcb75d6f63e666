// Package stablelm runs model type "stablelm": decoder layers with LayerNorms and a partial rope. Large models have
// norms of query and key heads, with weights for each head, and MLPs that read the same norm as attention.
//
// Reference: transformers 5.23, models/stablelm/modeling_stablelm.py.
package stablelm

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("stablelm", build) }

func build(t *mlx.Thread, c *arch.StableLM, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		first := norm(p + "input_layernorm")
		second := first
		if !c.Parallel {
			second = norm(p + "post_attention_layernorm")
		}
		var qNorm, kNorm *nn.Norm
		if c.QKNorm {
			qNorm = nn.NewHeadNorm(w, p+"self_attn.q_layernorm", c.Heads, c.HeadDim, c.NormEps)
			kNorm = nn.NewHeadNorm(w, p+"self_attn.k_layernorm", c.KVHeads, c.HeadDim, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: first,
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				QNorm:  qNorm,
				KNorm:  kNorm,
			}),
			NetworkNorm: second,
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			Parallel:    c.Parallel,
		})
	}
	return m
}
