// Package exaone4 runs model type "exaone4": decoder layers with norms after attention and MLP, and norms of query and
// key heads. Large models have three layers with a sliding window before each full one, which has no rope.
//
// Reference: transformers 5.23, models/exaone4/modeling_exaone4.py.
package exaone4

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("exaone4", build) }

func build(t *mlx.Thread, c *arch.Exaone4, w *nn.Weights) *nn.Decoder {
	norm := func(name string, size int) *nn.Norm { return nn.NewRMSNorm(w, name, size, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix+"norm", c.Hidden)})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		layerRope := rope
		if !c.Rotates(i) {
			layerRope = nil
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   layerRope,
				Window: int(state.Window),
				QNorm:  norm(p+"self_attn.q_norm", c.HeadDim),
				KNorm:  norm(p+"self_attn.k_norm", c.HeadDim),
			}),
			MixerPost:   norm(p+"post_attention_layernorm", c.Hidden),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
			NetworkPost: norm(p+"post_feedforward_layernorm", c.Hidden),
		})
	}
	return m
}
