// Package olmo3 runs model type "olmo3": decoder layers with norms after attention and MLP, and norms of queries and
// keys over all heads. Three layers with a sliding window and a rope of their own come before each full one.
//
// Reference: transformers 5.23, models/olmo3/modeling_olmo3.py.
package olmo3

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("olmo3", build) }

func build(t *mlx.Thread, c *arch.Olmo3, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, state := range c.State() {
		rope := full
		if c.Window > 0 && c.Sliding[i] {
			rope = sliding
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:       rope,
				Window:     int(state.Window),
				QNorm:      norm(p+"self_attn.q_norm", c.Heads*c.HeadDim),
				KNorm:      norm(p+"self_attn.k_norm", c.KVHeads*c.HeadDim),
				WholeNorms: true,
			}),
			MixerPost:   norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			NetworkPost: norm(p+"post_feedforward_layernorm", c.Hidden),
		})
	}
	return m
}
