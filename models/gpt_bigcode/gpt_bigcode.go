// Package gpt_bigcode runs model type "gpt_bigcode": GPT-2 whose query heads may read one key and value head.
//
// Reference: transformers 5.23, models/gpt_bigcode/modeling_gpt_bigcode.py.
package gpt_bigcode

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("gpt_bigcode", build) }

func build(t *mlx.Thread, c *arch.GPTBigCode, w *nn.Weights) *nn.Decoder {
	o := prenorm.Options{
		Ends:       nn.DecoderOptions{Positions: nn.NewPositions(w, c.Prefix+"embed_positions", c.Context, c.Hidden)},
		LayerNorms: true,
		Unrotated:  true,
		Plain:      true,
	}
	if c.Unscaled {
		o.Attention = 1
	}
	return prenorm.Build(t, &c.Dense, w, o)
}
