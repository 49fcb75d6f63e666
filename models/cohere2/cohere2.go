// Package cohere2 runs model type "cohere2": decoder layers whose attention and MLP read the same LayerNorm. Three
// layers with a sliding window and interleaved rope come before each full one, which has no rope.
//
// Reference: transformers 5.23, models/cohere2/modeling_cohere2.py.
package cohere2

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("cohere2", build) }

func build(t *mlx.Thread, c *arch.Cohere2, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, false) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:       norm(c.Prefix + "norm"),
		LogitScale: c.LogitScale,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim).Interleaved()
	for i, state := range c.State() {
		layerRope := rope
		if !c.Rotates(i) {
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
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			Parallel:    true,
		})
	}
	return m
}
