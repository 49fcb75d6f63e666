// Package gemma2 runs model type "gemma2": decoder layers normalized before and after attention and MLP, with soft
// caps of attention scores and logits. Every other layer has a sliding window.
//
// Reference: transformers 5.23, models/gemma2/modeling_gemma2.py.
package gemma2

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma2", build) }

func build(t *mlx.Thread, c *types.Gemma2, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps).PlusOne() }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix + "norm"),
		EmbeddingScale: math.Sqrt(float64(c.Hidden)),
		LogitCap:       c.LogitCap,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:    rope,
				Window:  int(state.Window),
				Scale:   1 / math.Sqrt(c.QueryScalar),
				SoftCap: c.ScoreCap,
			}),
			MixerPost:   norm(p + "post_attention_layernorm"),
			NetworkNorm: norm(p + "pre_feedforward_layernorm"),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.GELUTanhActivation),
			NetworkPost: norm(p + "post_feedforward_layernorm"),
		})
	}
	return m
}
