// Package gemma3 runs model type "gemma3": the text model, alone or from a multimodal checkpoint. Attention and MLP are
// normalized before and after, with norm weights stored as offsets from 1. Layers with a sliding window and a rope of
// their own alternate with full-attention layers.
//
// Reference: transformers 5.23, models/gemma3/modeling_gemma3.py.
package gemma3

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma3", build) }

func build(t *mlx.Thread, c *arch.Gemma3, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps).PlusOne() }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix+"norm", c.Hidden),
		EmbeddingScale: math.Sqrt(float64(c.Hidden)),
		LogitCap:       c.LogitCap,
	})
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, state := range c.State() {
		rope := full
		if c.Sliding[i] {
			rope = sliding
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p+"input_layernorm", c.Hidden),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
				Scale:  1 / math.Sqrt(c.QueryScalar),
				QNorm:  norm(p+"self_attn.q_norm", c.HeadDim),
				KNorm:  norm(p+"self_attn.k_norm", c.HeadDim),
			}),
			MixerPost:   norm(p+"post_attention_layernorm", c.Hidden),
			NetworkNorm: norm(p+"pre_feedforward_layernorm", c.Hidden),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.GELUTanhActivation),
			NetworkPost: norm(p+"post_feedforward_layernorm", c.Hidden),
		})
	}
	return m
}
