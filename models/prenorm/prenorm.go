// Package prenorm builds decoders of grouped-query attention and an MLP, each after a norm. Many types have these
// layers, and differ in names, keys and a few options.
package prenorm

import (
	"fmt"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Options are the differences between the types. The zero value is Llama.
type Options struct {
	Ends        nn.DecoderOptions // Norm is made here
	LayerNorms  bool              // LayerNorms instead of RMSNorms
	Unrotated   bool              // there is no rope
	Interleaved bool              // the rope pairs channels 2j and 2j+1
	HeadNorms   bool              // norms of query and key heads: q_layernorm, k_layernorm
	Attention   float64           // scale of the scores; 0 means 1/sqrt(head size)
	Scale       float64           // of what each block adds to the residual stream; 0 means 1
	// Parallel: the network reads the input of attention. OneNorm: the network also has attention's norm.
	Parallel, OneNorm bool
	Plain             bool // the MLP has no gate
	// Network makes the network of layer i; nil means an MLP in all layers.
	Network func(name string, i int) nn.Network
}

// Build makes a model.
func Build(t *mlx.Thread, c *config.Dense, w *nn.Weights, o Options) *nn.Decoder {
	o.Ends.Norm = o.norm(w, c.LastNorm(), c.Hidden, c.NormEps)
	m := nn.NewDecoder(w, c.Common, c.State(), o.Ends)
	var rope *nn.Rope
	if !o.Unrotated {
		rope = nn.NewRope(t, w, c.Rope, c.HeadDim)
	}
	if o.Interleaved {
		rope = rope.Interleaved()
	}
	for i, state := range c.State() {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		a := nn.AttentionOptions{Rope: rope, Window: int(state.Window), Scale: o.Attention}
		if o.HeadNorms {
			a.QNorm = o.norm(w, p+"self_attn.q_layernorm", c.HeadDim, c.NormEps)
			a.KNorm = o.norm(w, p+"self_attn.k_layernorm", c.HeadDim, c.NormEps)
		}
		first := o.norm(w, p+"input_layernorm", c.Hidden, c.NormEps)
		second := first
		if !o.OneNorm {
			second = o.norm(w, p+"post_attention_layernorm", c.Hidden, c.NormEps)
		}
		m.Blocks = append(m.Blocks, nn.Block{
			MixerNorm:   first,
			Mixer:       nn.NewAttention(w, p+"self_attn", i, c.Common, a),
			NetworkNorm: second,
			Network:     o.network(c, w, p+"mlp", i),
			Scale:       o.Scale,
			Parallel:    o.Parallel,
		})
	}
	return m
}

func (o Options) norm(w *nn.Weights, name string, width int, eps float64) *nn.Norm {
	if o.LayerNorms {
		return nn.NewLayerNorm(w, name, width, eps, true)
	}
	return nn.NewRMSNorm(w, name, width, eps)
}

func (o Options) network(c *config.Dense, w *nn.Weights, name string, i int) nn.Network {
	switch {
	case o.Network != nil:
		return o.Network(name, i)
	case o.Plain:
		activation := nn.ActivationOf(c.Activation)
		return nn.NewPlainMLP(w, name+".up_proj", name+".down_proj", c.Hidden, c.Intermediate, c.MLPBias, activation)
	}
	return nn.NewMLP(w, name, c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation)
}
