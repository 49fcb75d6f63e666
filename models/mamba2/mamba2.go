// Package mamba2 runs model type "mamba2": layers that are selective scans, each after an RMSNorm.
//
// Reference: transformers 5.23, models/mamba2/modeling_mamba2.py.
package mamba2

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("mamba2", build) }

func build(_ *mlx.Thread, c *types.Mamba2, w *nn.Weights) *nn.Decoder {
	return recurrent.NewModel(w, c.Common, c.State(), recurrent.Scans(w, "mixer", c.SSM, c.Hidden, c.NormEps))
}
