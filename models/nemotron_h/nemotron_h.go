// Package nemotron_h runs model type "nemotron_h": layers that are a selective scan, attention without positions, a
// plain MLP that squares the positive part, or experts that are such MLPs. Each is after an RMSNorm.
//
// Reference: transformers 5.23, models/nemotron_h/modeling_nemotron_h.py.
package nemotron_h

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("nemotron_h", build) }

func build(_ *mlx.Thread, c *types.NemotronH, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})
	for i, kind := range c.Kinds {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		block, name := nn.Block{MixerNorm: norm(p + "norm")}, p+"mixer"
		switch kind {
		case types.NemotronHScan:
			block.Mixer = recurrent.NewSSM(w, name, i, c.SSM, c.Hidden, c.NormEps)
		case types.NemotronHAttention:
			block.Mixer = nn.NewAttention(w, name, i, c.Common, nn.AttentionOptions{})
		case types.NemotronHMLP:
			block.Network = nn.NewPlainMLP(w, name+".up_proj", name+".down_proj", c.Hidden, c.Intermediate, c.MLPBias, mlx.ReLU2)
		case types.NemotronHExperts:
			block.Network = nn.NewMixture(w, name, c.Hidden, c.Mixture)
		}
		if block.Network != nil {
			block.MixerNorm, block.NetworkNorm = nil, block.MixerNorm
		}
		m.Blocks = append(m.Blocks, block)
	}
	return m
}
