// Package gptj runs model type "gptj": LayerNorms, a partial interleaved rope, and a plain MLP that reads the same norm
// as attention.
//
// Reference: transformers 5.23, models/gptj/modeling_gptj.py.
package gptj

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("gptj", build) }

func build(t *mlx.Thread, c *arch.GPTJ, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Ends:        nn.DecoderOptions{HeadBias: true},
		LayerNorms:  true,
		Interleaved: true,
		Parallel:    true,
		OneNorm:     true,
		Plain:       true,
	})
}
