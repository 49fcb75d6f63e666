// Package falcon_h1 runs model type "falcon_h1": attention and a selective scan side by side in every layer, then a
// SwiGLU MLP, with multipliers of inputs and outputs.
//
// Reference: transformers 5.23, models/falcon_h1/modeling_falcon_h1.py.
package falcon_h1

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
	"github.com/ingotml/ingot/models/nn/recurrent"
)

func init() { models.Register("falcon_h1", build) }

func build(t *mlx.Thread, c *types.FalconH1, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: func(_ *decoders.Builder, l decoders.Layer) nn.Mixer {
			return &mixer{
				config: c,
				scan:   recurrent.NewSSM(w, l.Prefix+"mamba", 2*l.Index, c.SSM, c.Hidden, c.NormEps),
				attention: nn.NewAttention(w, l.Prefix+"self_attn", 2*l.Index+1, c.Common, nn.AttentionOptions{
					Rope:  l.Rope,
					Scale: c.Keys / math.Sqrt(float64(c.HeadDim)),
				}),
			}
		},
		Network: func(b *decoders.Builder, l decoders.Layer) nn.Network {
			name := l.Prefix + b.Description.Network
			return &network{c, nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)}
		},
	})
}

// mixer is a scan and attention, which read the same rows.
type mixer struct {
	config    *types.FalconH1
	scan      *recurrent.SSM
	attention *nn.Attention
}

// AddApply implements nn.Mixer.
func (m *mixer) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	scanned := m.scan.Apply(b, mlx.MultiplyScalar(x, m.config.SSMIn))
	_, attended := m.attention.AddApply(b, nil, mlx.MultiplyScalar(x, m.config.AttentionIn), nil)
	return b.Queried(sum), mlx.Add(
		mlx.MultiplyScalar(scanned, m.config.SSMOut), mlx.MultiplyScalar(attended, m.config.AttentionOut))
}

// network is an MLP whose gate and output are multiplied.
type network struct {
	config *types.FalconH1
	mlp    *nn.MLP
}

// AddApply implements nn.Network.
func (m *network) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, m.mlp.Gate, m.mlp.Up)
	out = m.mlp.Down.ApplyGated(m.mlp.Activation, mlx.MultiplyScalar(in[0], m.config.Gate), in[1])
	return sum, mlx.MultiplyScalar(out, m.config.Down)
}
