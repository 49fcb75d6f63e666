// Package cohere2_moe runs model type "cohere2_moe": cohere2 with experts in some or all layers.
//
// Reference: transformers 5.23, models/cohere2_moe/modeling_cohere2_moe.py.
package cohere2_moe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("cohere2_moe", build) }

func build(t *mlx.Thread, c *arch.Cohere2Moe, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm {
		if c.RMSNorms {
			return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps)
		}
		return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, false)
	}
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:       norm(c.Prefix + "norm"),
		LogitScale: c.LogitScale,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Interleaved()
	for i, state := range c.State() {
		layerRope := rope
		if !c.Rotates[i] {
			layerRope = nil
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		shared := norm(p + "input_layernorm")
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: shared,
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   layerRope,
				Window: int(state.Window),
			}),
			NetworkNorm: shared,
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
			Parallel:    true,
		})
	}
	return m
}
