// Package opt runs model type "opt": LayerNorms, positions learned as vectors, and a plain MLP.
//
// Reference: transformers 5.23, models/opt/modeling_opt.py.
package opt

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("opt", build) }

func build(t *mlx.Thread, c *types.OPT, w *nn.Weights) *nn.Decoder {
	positions := nn.NewPositions(w, c.Prefix+"embed_positions", c.Context+types.OPTFirst, c.Hidden)
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		Ends:       nn.DecoderOptions{Positions: positions.After(w, types.OPTFirst)},
		LayerNorms: true,
		Unrotated:  true,
		Plain:      true,
	})
}
