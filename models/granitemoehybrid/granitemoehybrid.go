// Package granitemoehybrid runs model type "granitemoehybrid" (Granite 4): layers of attention or a selective scan,
// with Granite's multipliers, and an MLP for every token beside the experts, of which there may be none.
//
// Reference: transformers 5.23, models/granitemoehybrid/modeling_granitemoehybrid.py.
package granitemoehybrid

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("granitemoehybrid", build) }

func build(t *mlx.Thread, c *types.GraniteMoeHybrid, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.LastNorm()),
		EmbeddingScale: c.EmbeddingScale,
		LogitScale:     1 / c.LogitDivisor,
	})
	options := nn.AttentionOptions{Scale: c.AttentionScale}
	if !c.Unrotated {
		options.Rope = nn.NewRope(t, w, c.Rope, c.HeadDim)
	}
	for i, full := range c.Full {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		var mixer nn.Mixer
		if full {
			mixer = nn.NewAttention(w, p+"self_attn", i, c.Common, options)
		} else {
			mixer = recurrent.NewSSM(w, p+"mamba", i, c.SSM, c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   norm(p + "input_layernorm"),
			Mixer:       mixer,
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     newNetwork(w, p, c),
			Scale:       c.ResidualScale,
		})
	}
	return m
}

// network is a mixture of experts and an MLP, whose outputs are added.
type network struct {
	experts *nn.Mixture
	shared  *nn.MLP
}

func newNetwork(w *nn.Weights, p string, c *types.GraniteMoeHybrid) nn.Network {
	shared := nn.NewMLP(w, p+"shared_mlp", c.Hidden, c.Shared, c.MLPBias, mlx.SiLUActivation)
	if c.Mixture == nil {
		return shared
	}
	return &network{nn.NewMixture(w, p+"block_sparse_moe", c.Hidden, *c.Mixture), shared}
}

// AddApply implements nn.Network.
func (n *network) AddApply(norm *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = norm.AddApply(x, y)
	_, out = n.experts.AddApply(nil, x, nil)
	return sum, mlx.Add(out, n.shared.Apply(x))
}
