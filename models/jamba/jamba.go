// Package jamba runs model type "jamba": layers of attention without positions or a selective scan of channels, each
// with a SwiGLU MLP or experts.
//
// Reference: transformers 5.23, models/jamba/modeling_jamba.py.
package jamba

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("jamba", build) }

func build(t *mlx.Thread, c *types.Jamba, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: decoders.Unless(c.Full, recurrent.ChannelScans(w, "mamba", c.SSM, c.Hidden, c.NormEps)),
	})
}
