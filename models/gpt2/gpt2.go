// Package gpt2 runs model type "gpt2": decoder layers of attention without rope and a plain MLP, each after a
// LayerNorm. Positions are vectors of a table, which are added to the embeddings.
//
// Reference: transformers 5.23, models/gpt2/modeling_gpt2.py.
package gpt2

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gpt2", build) }

func build(t *mlx.Thread, c *types.GPT2, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Attention: func(layer int, o *nn.AttentionOptions) { o.Scale = scale(c, layer) },
	})
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
