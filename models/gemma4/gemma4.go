// Package gemma4 runs the text model of model type "gemma4" in all of its variants: per-layer embeddings and layers
// that share keys and values (E2B, E4B), full layers whose keys are their values (12B, 31B), and experts in parallel
// with the dense MLP (26B-A4B).
//
// Reference: transformers 5.23, models/gemma4/modeling_gemma4.py.
package gemma4

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma4", build) }

// model is a decoder with a forward pass of its own.
type model struct {
	*nn.Decoder
	perLayer *PerLayer // nil if the variant has none
	layers   []layer
	storing  int // the last layer that stores keys and values
	hidden   int
}

type layer struct {
	attentionNorm     *nn.Norm
	attention         Attention
	postAttentionNorm *nn.Norm
	mlpNorm           *nn.Norm
	mlp               *nn.MLP
	experts           *experts // nil if the variant has none
	postMLPNorm       *nn.Norm
	gate              *PerLayerGate // nil if the variant has no per-layer embeddings
	scalar            *mlx.Array    // [1]: multiplies the layer's output
}

func build(t *mlx.Thread, c *types.Gemma4, w *nn.Weights) *model {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := &model{
		Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
			Norm:           norm(c.Prefix + "norm"),
			EmbeddingScale: math.Sqrt(float64(c.Hidden)),
			LogitCap:       c.LogitCap,
		}),
		perLayer: NewPerLayer(w, c),
		hidden:   c.Hidden,
	}
	full := nn.NewRope(t, w, c.Rope, c.Layer[c.Layers-1].HeadDim) // the last layer is always a full one
	sliding := nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, l := range c.Layer {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		m.layers = append(m.layers, layer{
			attentionNorm:     norm(p + "input_layernorm"),
			attention:         NewAttention(w, p+"self_attn", c, i, full, sliding),
			postAttentionNorm: norm(p + "post_attention_layernorm"),
			mlpNorm:           norm(p + "pre_feedforward_layernorm"),
			mlp:               nn.NewMLP(w, p+"mlp", c.Hidden, l.Intermediate, false, mlx.GELUTanhActivation),
			experts:           newExperts(w, p, c),
			postMLPNorm:       norm(p + "post_feedforward_layernorm"),
			gate:              NewPerLayerGate(w, p, c, i),
			scalar:            w.Take(p+"layer_scalar", 1),
		})
		if !c.Shared(i) {
			m.storing = i
		}
	}
	return m
}

// Forward implements models.Model. After the last layer that stores keys and values, it processes only the wanted rows.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	s, all := m.Stage(), b
	var vectors *mlx.Array
	h := s.Enter(b, func() *mlx.Array {
		h := m.Embed(b.Tokens)
		vectors = m.perLayer.Vectors(h, b.Tokens)
		return h
	}, m.hidden+m.perLayer.Width())
	if !s.IsFirst() {
		h, vectors = m.perLayer.Cut(h, m.hidden)
	}
	first, end := s.Own(len(m.layers))
	for i := first; i < end; i++ {
		l := &m.layers[i]
		if i == m.storing {
			b = b.Ending()
		}
		y := l.attention.Apply(b, l.attentionNorm, h)
		if i == m.storing {
			h = b.Wanted(h)
			if vectors != nil {
				vectors = b.Wanted(vectors)
			}
			b = b.Narrow()
		}
		h = l.network(h, l.postAttentionNorm.Apply(y))
		if l.gate != nil {
			h = mlx.Add(h, l.gate.Apply(h, vectors))
		}
		h = mlx.Multiply(h, l.scalar)
	}
	if s != nil {
		return s.Leave(all, m.perLayer.After(end-first, h, vectors))
	}
	return m.Norm.Apply(h)
}

// network returns h+y plus the output of the layer's MLP and experts on that sum.
func (l *layer) network(h, y *mlx.Array) *mlx.Array {
	h, y = l.mlp.AddApply(l.mlpNorm, h, y)
	if l.experts == nil {
		return mlx.Add(h, l.postMLPNorm.Apply(y))
	}
	_, y = l.postMLPNorm.AddApply(l.experts.branches(h, y))
	return mlx.Add(h, y)
}
