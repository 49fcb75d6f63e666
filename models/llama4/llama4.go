// Package llama4 runs model types "llama4_text" and the text of "llama4": pre-norm decoder layers that attend within
// chunks of the text, full ones without rope between them, and experts whose input the router scales.
//
// Reference: transformers 5.23, models/llama4/modeling_llama4.py.
package llama4

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("llama4", build) }

func build(t *mlx.Thread, c *types.Llama4, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Attention: func(layer int, o *nn.AttentionOptions) { attention(c, layer, o) },
	})
}

func attention(c *types.Llama4, layer int, o *nn.AttentionOptions) {
	o.Chunked, o.NormsLast = o.Window > 0, true
	switch {
	case c.Rotates[layer]:
		o.Growth = nil
	case o.Growth != nil:
		o.Growth.Shift = 1
	}
	if c.Rotates[layer] && c.QKNorm {
		o.QNorm, o.KNorm = nn.PlainRMSNorm(c.NormEps), nn.PlainRMSNorm(c.NormEps)
	}
}
