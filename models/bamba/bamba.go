// Package bamba runs model type "bamba": layers of attention with a partial rope or a selective scan, each with a
// SwiGLU MLP.
//
// Reference: transformers 5.23, models/bamba/modeling_bamba.py.
package bamba

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("bamba", build) }

func build(t *mlx.Thread, c *types.Bamba, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: decoders.Unless(c.Full, recurrent.Scans(w, "mamba", c.SSM, c.Hidden, c.NormEps)),
	})
}
