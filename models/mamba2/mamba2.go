// Package mamba2 runs model type "mamba2": layers that are selective scans, each after an RMSNorm.
//
// Reference: transformers 5.23, models/mamba2/modeling_mamba2.py.
package mamba2

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("mamba2", build) }

func build(_ *mlx.Thread, c *types.Mamba2, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "norm"),
			Mixer:     recurrent.NewSSM(w, p+"mixer", i, c.SSM, c.Hidden, c.NormEps),
		})
	}
	return m
}
