// Package mamba runs model type "mamba": layers that are selective scans of channels, each after an RMSNorm.
//
// Reference: transformers 5.23, models/mamba/modeling_mamba.py.
package mamba

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("mamba", build) }

func build(_ *mlx.Thread, c *types.Mamba, w *nn.Weights) *nn.Decoder {
	return recurrent.NewModel(w, c.Common, c.State(), recurrent.ChannelScans(w, "mixer", c.SSM, c.Hidden, c.NormEps))
}
