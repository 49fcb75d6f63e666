// Package gemma3n runs the text model of model type "gemma3n". Its attention and per-layer embeddings are those of
// gemma4. The residual stream has several versions, of which a layer computes one and corrects the others.
//
// Reference: transformers 5.23, models/gemma3n/modeling_gemma3n.py.
package gemma3n

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/gemma4"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("gemma3n", build) }

// model is a decoder with a forward pass of its own.
type model struct {
	*nn.Decoder
	streams  *streams
	perLayer *gemma4.PerLayer
	layers   []layer
	storing  int // the last layer that stores keys and values
	versions int
	hidden   int
}

type layer struct {
	altup             *altup
	attentionNorm     *nn.Norm
	laurel            *laurel
	attention         gemma4.Attention
	postAttentionNorm *nn.Norm
	mlpNorm           *nn.Norm
	mlp               nn.Network
	postMLPNorm       *nn.Norm
	gate              *gemma4.PerLayerGate
}

func build(t *mlx.Thread, c *types.Gemma3n, w *nn.Weights) *model {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.Hidden, c.NormEps) }
	m := &model{
		Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{
			Norm:           norm(c.Prefix + "norm"),
			EmbeddingScale: math.Sqrt(float64(c.Hidden)),
			LogitCap:       c.LogitCap,
		}),
		streams:  newStreams(t, w, c),
		perLayer: gemma4.NewPerLayer(w, &c.Gemma4),
		versions: c.Streams,
		hidden:   c.Hidden,
	}
	full, sliding := nn.NewRope(t, w, c.Rope, c.HeadDim), nn.NewRope(t, w, c.SlidingRope, c.HeadDim)
	for i, l := range c.Layer {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		mlp := nn.NewMLP(w, p+"mlp", c.Hidden, l.Intermediate, c.MLPBias, mlx.GELUTanhActivation)
		made := layer{
			altup:             newAltup(w, p+"altup", c),
			attentionNorm:     norm(p + "input_layernorm"),
			laurel:            newLaurel(w, p+"laurel", c),
			attention:         gemma4.NewAttention(w, p+"self_attn", &c.Gemma4, i, full, sliding),
			postAttentionNorm: norm(p + "post_attention_layernorm"),
			mlpNorm:           norm(p + "pre_feedforward_layernorm"),
			mlp:               mlp,
			postMLPNorm:       norm(p + "post_feedforward_layernorm"),
			gate:              gemma4.NewPerLayerGate(w, p, &c.Gemma4, i),
		}
		if deviations, ok := c.Deviations(i); ok {
			made.mlp = &sparseMLP{mlp, deviations}
		}
		m.layers = append(m.layers, made)
		if !c.Shared(i) {
			m.storing = i
		}
	}
	return m
}

// Forward implements models.Model. After the last layer that stores keys and values, it processes only the wanted rows.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	s, all, width := m.Stage(), b, m.versions*m.hidden
	var h, vectors *mlx.Array
	x := s.Enter(b, func() *mlx.Array {
		h = m.Embed(b.Tokens)
		vectors = m.perLayer.Vectors(h, b.Tokens)
		return m.streams.begin(h)
	}, width+m.perLayer.Width())
	if !s.IsFirst() {
		x, vectors = m.perLayer.Cut(x, width)
		x = mlx.Reshape(x, -1, m.versions, m.hidden)
	}
	first, end := s.Own(len(m.layers))
	for i := first; i < end; i++ {
		l := &m.layers[i]
		if i == m.storing {
			b = b.Ending()
		}
		predicted := l.altup.predict(x)
		normed := l.attentionNorm.Apply(l.altup.active(predicted))
		y := l.attention.Apply(b, nil, normed)
		if i == m.storing {
			predicted, normed, vectors = b.Wanted(predicted), b.Wanted(normed), b.Wanted(vectors)
			b = b.Narrow()
		}
		h = l.network(l.altup.active(predicted), normed, y)
		x = l.altup.correct(predicted, h, func(active *mlx.Array) *mlx.Array { return l.gate.Apply(active, vectors) })
	}
	if s != nil {
		return s.Leave(all, m.perLayer.After(end-first, mlx.Reshape(x, -1, width), vectors))
	}
	return m.Norm.Apply(m.streams.end(x))
}

// Finish implements models.Staged.
func (m *model) Finish(rows int) *mlx.Array {
	return m.Norm.Apply(m.streams.end(m.Stage().Returned(rows, m.versions, m.hidden)))
}

// network returns the layer's output for its input h, the normalized input, and the attention y of that.
func (l *layer) network(h, normed, y *mlx.Array) *mlx.Array {
	h = mlx.Add(h, l.postAttentionNorm.Apply(y))
	h = mlx.MultiplyScalar(mlx.Add(h, l.laurel.apply(normed)), math.Sqrt2/2)
	h, y = l.mlp.AddApply(l.mlpNorm, h, nil)
	return mlx.Add(h, l.postMLPNorm.Apply(y))
}

// laurel adds a product of low rank to its input (Learned Augmented Residual Layer).
type laurel struct {
	left, right *nn.Linear
	norm        *nn.Norm
}

func newLaurel(w *nn.Weights, name string, c *types.Gemma3n) *laurel {
	return &laurel{
		left:  nn.NewLinear(w, name+".linear_left", c.LaurelRank, c.Hidden, false),
		right: nn.NewLinear(w, name+".linear_right", c.Hidden, c.LaurelRank, false),
		norm:  nn.NewRMSNorm(w, name+".post_laurel_norm", c.Hidden, c.NormEps),
	}
}

func (l *laurel) apply(x *mlx.Array) *mlx.Array {
	return mlx.Add(x, l.norm.Apply(l.right.Apply(l.left.Apply(x))))
}

// sparseMLP is an MLP that uses the gates above a limit, less that limit: the mean of their row plus a number of
// standard deviations.
type sparseMLP struct {
	*nn.MLP
	deviations float64
}

// AddApply implements [nn.Network].
func (m *sparseMLP) AddApply(n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, m.Gate, m.Up)
	gate := m.Gate.OfAll(in[0], func(all *mlx.Array) *mlx.Array { return mlx.SparseRows(all, m.deviations) })
	return sum, m.Down.ApplyGated(m.Activation, gate, in[1])
}
