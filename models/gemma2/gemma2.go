// Package gemma2 runs model type "gemma2": decoder layers normalized before and after attention and MLP, with soft
// caps of attention scores and logits. Every other layer has a sliding window.
//
// Reference: transformers 5.23, models/gemma2/modeling_gemma2.py.
package gemma2

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma2", build) }

func build(t *mlx.Thread, c *types.Gemma2, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Attention: func(_ int, o *nn.AttentionOptions) { o.SoftCap = c.ScoreCap },
	})
}
