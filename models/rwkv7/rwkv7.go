// Package rwkv7 runs model type "rwkv7": layers of a recurrence with a state matrix for each head, and a feed-forward
// block that also reads the row before.
//
// Reference: mlx-lm 0.32, mlx_lm/models/rwkv7.py.
package rwkv7

import (
	"fmt"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

func init() { models.Register("rwkv7", build) }

// model is a decoder with a forward pass of its own: all layers read the values of the first one.
type model struct {
	*nn.Decoder
	first  *nn.Norm // nil if the model has none
	layers []layer
}

type layer struct {
	mixerNorm, networkNorm *nn.Norm
	mixer                  *mixer
	network                *network
}

func build(t *mlx.Thread, c *types.Rwkv7, w *nn.Weights) *model {
	norm := func(name string) *nn.Norm { return nn.NewLayerNorm(w, name, c.Hidden, c.NormEps, c.NormBias) }
	m := &model{Decoder: nn.NewDecoder(w, c.Common, c.State(), nn.DecoderOptions{Norm: norm(c.LastNorm())})}
	before := newShift(t, w, c.Hidden)
	for i := range c.Layers {
		p := fmt.Sprintf("%slayers.%d.", c.Prefix, i)
		if i == 0 && c.First {
			m.first = norm(p + "pre_norm")
		}
		m.layers = append(m.layers, layer{
			mixerNorm:   norm(p + "attn_norm"),
			mixer:       newMixer(w, p+"attn", i, c, before),
			networkNorm: norm(p + "ffn_norm"),
			network:     newNetwork(w, p+"ffn", i, c, before),
		})
	}
	return m
}

// Forward implements models.Model.
func (m *model) Forward(b *nn.Batch) *mlx.Array {
	from, end := m.Stage().Own(len(m.layers))
	own := m.layers[from].mixer
	width := own.heads * own.dim
	h := m.Stage().Enter(b, func() *mlx.Array { return m.first.Apply(b.Embedded(m.Embed(b.Tokens))) }, 2*width)
	var first *mlx.Array // the values of the first layer
	if from > 0 {
		both := mlx.SplitEven(h, 2, 1)
		h, first = both[0], mlx.Reshape(both[1], -1, own.heads, own.dim)
	}
	for i := from; i < end; i++ {
		l := &m.layers[i]
		y, values := l.mixer.apply(b, l.mixerNorm.Apply(h), first)
		if i == 0 {
			first = values
		}
		h = mlx.Add(h, y)
		if i == len(m.layers)-1 {
			b = b.Ending()
		}
		h = mlx.Add(b.Queried(h), l.network.apply(b, l.networkNorm.Apply(h)))
	}
	if s := m.Stage(); s != nil {
		if end < len(m.layers) {
			h = mlx.Concatenate(1, h, mlx.Reshape(first, -1, width))
		}
		return s.Leave(b, h)
	}
	return m.Norm.Apply(h)
}

// shift subtracts each row from the row before, as a convolution of two rows.
type shift struct{ weights *mlx.Array }

func newShift(t *mlx.Thread, w *nn.Weights, channels int) shift {
	weights := mlx.Concatenate(0, mlx.Full(t, 1, mlx.Float32, 1, channels), mlx.Full(t, -1, mlx.Float32, 1, channels))
	return shift{w.Constant(mlx.AsType(weights, w.DType))}
}

// network is a feed-forward block of each row and the row before.
type network struct {
	layer      int // of its state
	before     shift
	by         *mlx.Array // [1, hidden]: the part of the row before
	key, value *nn.Linear
}

func newNetwork(w *nn.Weights, name string, layer int, c *types.Rwkv7, before shift) *network {
	n := &network{
		layer:  2*layer + 1,
		before: before,
		key:    nn.NewLinear(w, name+".key", c.Intermediate, c.Hidden, false),
		value:  nn.NewLinear(w, name+".value", c.Hidden, c.Intermediate, false),
	}
	if by := w.Take(name+".x_k", c.Hidden); by != nil {
		n.by = w.Constant(typed(w, mlx.Reshape(by, 1, -1)))
	}
	return n
}

func (n *network) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	r := b.Recurrence(n.layer, x, 2, nil)
	delta := r.Convolve(x, n.before.weights, nil, false)
	r.Stop()
	in := mlx.BlendRows(b.Queried(x), b.Queried(delta), n.by)[0]
	return n.value.Apply(mlx.ReLU2(n.key.Apply(in)))
}

// typed returns an array in the type of the activations.
func typed(w *nn.Weights, x *mlx.Array) *mlx.Array { return mlx.Contiguous(mlx.AsType(x, w.DType)) }
