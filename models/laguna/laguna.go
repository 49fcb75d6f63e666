// Package laguna runs model type "laguna": pre-norm decoder layers with gated attention, whose heads and rope depend on
// the layer, and experts.
//
// Reference: transformers 5.23, models/laguna/modeling_laguna.py.
package laguna

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("laguna", build) }

func build(t *mlx.Thread, c *types.Laguna, w *nn.Weights) *nn.Decoder {
	return decoders.Build(t, c, w, decoders.Own{
		Mixer: func(b *decoders.Builder, l decoders.Layer) nn.Mixer {
			return nn.NewGatedAttention(w, l.Prefix+"self_attn", l.Index, c.Layer(l.Index), nn.GatedAttentionOptions{
				Gate: "." + b.Gate, PerHead: c.PerHead[l.Index], Softplus: true, Rope: l.Rope, Window: l.Window,
			})
		},
	})
}
