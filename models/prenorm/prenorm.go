// Package prenorm builds decoders of grouped-query attention with rope and a gated MLP, each after a norm. Many types
// have these layers, and differ in names, keys and a few options.
package prenorm

import (
	"fmt"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Options are the differences between the types. The zero value is Llama.
type Options struct {
	Ends       nn.DecoderOptions // Norm is that of the layers
	LayerNorms bool              // LayerNorms instead of RMSNorms
	Neighbours bool              // the rope rotates neighbouring channels
	Scale      float64           // of what each block adds to the residual stream; 0 means 1
	// Network makes the network of layer i; nil means a gated MLP in all layers.
	Network func(name string, i int) nn.Network
}

// Build makes a model.
func Build(t *mlx.Thread, c *arch.Dense, w *nn.Weights, o Options) *nn.Decoder {
	norm := func(name string) *nn.Norm {
		if o.LayerNorms {
			return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, true)
		}
		return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps)
	}
	network := o.Network
	if network == nil {
		network = func(name string, _ int) nn.Network {
			return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
		}
	}
	o.Ends.Norm = norm(c.Prefix + "norm")
	m := nn.NewDecoder(w, c.Common, c.State(), o.Ends)
	rope := nn.NewRope(t, w, c.Rope, c.HeadDim)
	if o.Neighbours {
		rope = rope.Neighbours()
	}
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm: norm(p + "input_layernorm"),
			Mixer: nn.NewAttention(w, p+"self_attn", i, c.Common, nn.AttentionOptions{
				Rope:   rope,
				Window: int(state.Window),
			}),
			NetworkNorm: norm(p + "post_attention_layernorm"),
			Network:     network(p+"mlp", i),
			Scale:       o.Scale,
		})
	}
	return m
}
