// Package mimo_v2_flash runs model type "mimo_v2_flash": pre-norm decoder layers whose values are smaller than their
// keys, sliding ones with attention sinks, and experts that a sigmoid router chooses.
//
// Reference: transformers 5.23, models/mimo_v2_flash/modeling_mimo_v2_flash.py.
package mimo_v2_flash

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/decoders"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("mimo_v2_flash", build) }

func build(t *mlx.Thread, c *types.MiMoV2Flash, w *nn.Weights) *models.Decoder {
	d, b := decoders.BuildWith(t, c, w, decoders.Own{
		Mixer: func(_ *decoders.Builder, l decoders.Layer) nn.Mixer {
			return newAttention(w, l.Prefix+"self_attn", l.Index, l.Window, c, l.Rope)
		},
	})
	m := &models.Decoder{Decoder: d}
	// transformers does not implement the head and ignores its tensors. This follows other inference engines.
	if p := c.Next(); c.Window > 0 && w.Has(p+"eh_proj.weight") {
		norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, p+name, c.Hidden, c.NormEps) }
		m.Next = models.NewNext(w, p, "final_layernorm", c.Common, m, nn.Block{
			MixerNorm:   norm("input_layernorm"),
			Mixer:       newAttention(w, p+"self_attn", 0, c.Window, c, b.SlidingRope),
			NetworkNorm: norm("pre_mlp_layernorm"),
			Network:     nn.NewMLP(w, p+"mlp", c.Hidden, c.Intermediate, c.MLPBias, mlx.SiLUActivation),
		})
		m.Next.Window = c.Window
	}
	return m
}

// attention is grouped-query attention with heads of values of another size, which are scaled, and sinks.
type attention struct {
	layer      int
	q, k, v, o *nn.Linear
	scale      float64 // of the values
	options    nn.AttendOptions
}

// newAttention takes the projections under a name, for a layer that slides if it has a window.
func newAttention(w *nn.Weights, name string, layer, window int, c *types.MiMoV2Flash, rope *nn.Rope) *attention {
	own, sinks := c.Common, c.Sinks
	if window > 0 {
		own, sinks = c.SlidingLayer()
	}
	heads := func(part string, n, dim int) *nn.Linear {
		return nn.NewLinear(w, name+part, n*dim, c.Hidden, c.AttentionBias).Split(n)
	}
	a := &attention{
		layer:   layer,
		q:       heads(".q_proj", own.Heads, c.HeadDim),
		k:       heads(".k_proj", own.KVHeads, c.HeadDim),
		v:       heads(".v_proj", own.KVHeads, c.ValueDim),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, own.Heads*c.ValueDim, false).Join(),
		scale:   c.ValueScale,
		options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Window: window, Rope: rope},
	}
	if sinks {
		a.options.Sinks = w.Take(name+".sinks", own.Heads)
	}
	return a
}

// AddApply implements nn.Mixer. It scales the sum of the values instead of each.
func (a *attention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, qkv := nn.NormedQueries(b, n, x, y, a.q, a.k, a.v)
	q, k := a.options.Rope.Apply(b, qkv[0], qkv[1])
	attended := nn.Attend(b, a.layer, q, k, qkv[2], a.options)
	return sum, a.o.Apply(mlx.MultiplyScalar(attended, a.scale))
}
