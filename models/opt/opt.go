// Package opt runs model type "opt": LayerNorms, positions learned as vectors, and a plain MLP.
//
// Reference: transformers 5.23, models/opt/modeling_opt.py.
package opt

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("opt", build) }

func build(t *mlx.Thread, c *types.OPT, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Ends: func(o *nn.DecoderOptions) { o.Positions = o.Positions.After(w, types.OPTFirst) },
	})
}
