// Package afmoe runs model type "afmoe": decoder layers with norms before and after gated attention and experts, and
// sliding layers between full ones without rope.
//
// Reference: transformers 5.23, models/afmoe/modeling_afmoe.py.
package afmoe

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("afmoe", build) }

func build(t *mlx.Thread, c *arch.Afmoe, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
		Norm:           norm(c.Prefix + "norm"),
		EmbeddingScale: c.EmbeddingScale,
	})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		layerRope := rope
		if !c.Rotates(i) {
			layerRope = nil
		}
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewGatedAttention(w, p+"self_attn", i, c.Common, nn.GatedAttentionOptions{
				Gate: ".gate_proj", Rope: layerRope, Window: int(state.Window),
			}),
			MixerPost:   norm(p + "post_attention_layernorm"),
			NetworkNorm: norm(p + "pre_mlp_layernorm"),
			Network:     nn.NewNetwork(w, p+"mlp", c.Common, c.Intermediate, c.Mixture, c.Mixture.Sparse[i]),
			NetworkPost: norm(p + "post_mlp_layernorm"),
		})
	}
	return m
}
