// Package starcoder2 runs model type "starcoder2": pre-norm decoder layers with LayerNorms, biases, and a plain MLP.
// All layers may have a sliding window.
//
// Reference: transformers 5.23, models/starcoder2/modeling_starcoder2.py.
package starcoder2

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("starcoder2", build) }

func build(t *mlx.Thread, c *arch.Starcoder2, w *nn.Weights) *nn.Decoder {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true) }
	m := nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.Prefix + "norm")})
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     nn.NewPlainMLP(w, p+"mlp.c_fc", p+"mlp.c_proj", c.Hidden, c.Intermediate, c.MLPBias, mlx.GELUTanh),
		})
	}
	return m
}
