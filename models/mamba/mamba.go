// Package mamba runs model type "mamba": layers that are selective scans of channels, each after an RMSNorm.
//
// Reference: transformers 5.23, models/mamba/modeling_mamba.py.
package mamba

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("mamba", build) }

func build(_ *mlx.Thread, c *types.Mamba, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "norm"),
			Mixer:     recurrent.NewChannelSSM(w, p+"mixer", i, c.SSM, c.Hidden, c.NormEps),
		})
	}
	return m
}
