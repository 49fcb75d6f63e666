// Package falcon runs model type "falcon": LayerNorms, a rope, and a plain MLP that mostly reads the input of
// attention, with its norm or one of its own.
//
// Reference: transformers 5.23, models/falcon/modeling_falcon.py.
package falcon

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/prenorm"
)

func init() { models.Register("falcon", build) }

func build(t *mlx.Thread, c *arch.Falcon, w *nn.Weights) *nn.Decoder {
	return prenorm.Build(t, &c.Dense, w, prenorm.Options{
		LayerNorms: true,
		Parallel:   c.Parallel,
		OneNorm:    c.Parallel && !c.TwoNorms,
		Plain:      true,
	})
}
