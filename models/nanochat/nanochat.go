// Package nanochat runs model type "nanochat": pre-norm decoder layers whose norms have no weights, with an inverse
// rope, norms of query and key heads after it, and a plain MLP that squares the positive part.
//
// Reference: transformers 5.23, models/nanochat/modeling_nanochat.py.
package nanochat

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("nanochat", build) }

func build(t *mlx.Thread, c *types.NanoChat, w *nn.Weights) *nn.Decoder {
	norm := nn.PlainRMSNorm(c.NormEps)
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{EmbeddingNorm: norm, Norm: norm, LogitCap: c.LogitCap})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Inverse(w)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm,
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:      rope,
				Window:    int(state.Window),
				QNorm:     norm,
				KNorm:     norm,
				NormsLast: true,
			}),
			NetworkNorm: norm,
			Network:     nn.NewPlainMLP(w, p+"mlp.fc1", p+"mlp.fc2", c.Hidden, c.Intermediate, c.MLPBias, mlx.ReLU2),
		})
	}
	return m
}
