// Package granitemoehybrid runs model type "granitemoehybrid" (Granite 4): layers of attention or a selective scan,
// with Granite's multipliers, and an MLP for every token beside the experts, of which there may be none.
//
// Reference: transformers 5.23, models/granitemoehybrid/modeling_granitemoehybrid.py.
package granitemoehybrid

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("granitemoehybrid", build) }

func build(t *mlx.Thread, c *types.GraniteMoeHybrid, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer:   decoders.Unless(c.Full, recurrent.Scans(w, "mamba", c.SSM, c.Hidden, c.NormEps)),
		Network: func(_ *decoders.Builder, l decoders.Layer) nn.Network { return newNetwork(w, l.Prefix, c) },
	})
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
