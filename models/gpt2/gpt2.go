// Package gpt2 runs model type "gpt2": decoder layers of attention without rope and a plain MLP, each after a
// LayerNorm. Positions are vectors of a table, which are added to the embeddings.
//
// Reference: transformers 5.23, models/gpt2/modeling_gpt2.py.
package gpt2

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gpt2", build) }

func build(_ *mlx.Thread, c *types.GPT2, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:      norm(c.Prefix + "norm"),
		Positions: nn.NewPositions(w, c.Prefix+"embed_positions", c.Context, c.Hidden),
	})
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{Scale: scale(c, i)}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network: nn.NewPlainMLP(w, p+"mlp.up_proj", p+"mlp.down_proj", c.Hidden, c.Intermediate, c.MLPBias,
				nn.ActivationOf(c.Activation)),
		})
	}
	return m
}

// scale returns what a layer multiplies its attention scores by.
func scale(c *types.GPT2, layer int) float64 {
	s := 1.0
	if !c.Unscaled {
		s /= math.Sqrt(float64(c.HeadDim))
	}
	if c.ByLayer {
		s /= float64(layer + 1)
	}
	return s
}
