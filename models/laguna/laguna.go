// Package laguna runs model type "laguna": pre-norm decoder layers with gated attention, whose heads and rope depend on
// the layer, and experts.
//
// Reference: transformers 5.23, models/laguna/modeling_laguna.py.
package laguna

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("laguna", build) }

func build(t *mlx.Thread, c *types.Laguna, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, state := range c.State() {
		rope := full
		if state.Window > 0 {
			rope = sliding
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewGatedAttention(w, p+"self_attn", i, c.Layer(i), nn.GatedAttentionOptions{
				Gate: ".g_proj", PerHead: c.PerHead[i], Softplus: true, Rope: rope, Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
		})
	}
	return m
}
