package recurrent_gemma

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// recurrence is the recurrent block of Griffin. A projection passes a short causal convolution and a real-gated linear
// recurrence (RG-LRU), and is gated by the activation of another projection. The recurrence keeps a number for each
// channel: every row decays it by a, and adds the gated input times sqrt(1 - a^2). Both gates are projections of the
// convolved row, head by head.
type recurrence struct {
	layer, width, heads, taps int
	x, y, out                 *nn.Linear
	conv, convBias            *mlx.Array // [taps, width], [width]
	input, decay              *nn.HeadLinear
	// gates are float32 [width]: the biases of input and decay, and -8 softplus(recurrent_param).
	gates []*mlx.Array
}

func newRecurrence(w *nn.Weights, name string, layer int, c *types.RecurrentGemma) *recurrence {
	_, width := w.Own(name+".linear_x.weight", c.Width)
	_, heads := w.Own(name+".linear_x.weight", c.Heads)
	l := &recurrence{
		layer: layer,
		width: width,
		heads: heads,
		taps:  c.Kernel,
		x:     nn.NewLinear(w, name+".linear_x", c.Width, c.Hidden, true),
		y:     nn.NewLinear(w, name+".linear_y", c.Width, c.Hidden, true),
		out:   nn.NewLinear(w, name+".linear_out", c.Hidden, c.Width, true),
	}
	l.conv, l.convBias = w.Convolution(name+".conv_1d", c.Width, c.Kernel, true)
	dim := c.Width / c.Heads
	gate := func(name string) (*nn.HeadLinear, *mlx.Array) {
		matrices, bias := w.Take(name+"_weight", c.Heads, dim, dim), w.Take(name+"_bias", c.Heads, dim)
		if matrices == nil || bias == nil {
			return nil, nil
		}
		// Matrices are [in, out].
		transposed := w.Transposed(&nn.Tensor{Array: matrices})
		return nn.NewHeadLinear(w, transposed), w.Float32(bias, func(a *mlx.Array) *mlx.Array { return mlx.Reshape(a, -1) })
	}
	input, inputBias := gate(name + ".rg_lru.input_gate")
	decay, decayBias := gate(name + ".rg_lru.recurrent_gate")
	rate := w.Float32(w.Take(name+".rg_lru.recurrent_param", c.Width), func(a *mlx.Array) *mlx.Array {
		return mlx.MultiplyScalar(mlx.Softplus(a), -8)
	})
	l.input, l.decay, l.gates = input, decay, []*mlx.Array{inputBias, decayBias, rate}
	return l
}

// AddApply implements nn.Mixer. Each segment continues from the state of its sequence.
func (l *recurrence) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.x, l.y)
	r := b.Recurrence(l.layer, in[0], l.taps, []int{l.width})
	rows := r.Convolve(in[0], l.conv, l.convBias, false)
	heads := mlx.Reshape(rows, -1, l.heads, l.width/l.heads)
	scores := func(of *nn.HeadLinear) *mlx.Array { return mlx.Reshape(of.Apply(heads), -1, l.width) }
	// The first row of a text has no state before it and is not scaled.
	gated := mlx.UnitGates(rows, scores(l.input), scores(l.decay), l.gates, b.Positions)
	said := r.Scan(scan, gated[0], gated[1])
	said = b.Queried(mlx.AsType(said, x.DType()))
	return b.Queried(sum), l.out.ApplyGated(mlx.GELUTanhActivation, b.Queried(in[1]), said)
}

func scan(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.DecayedSum(in[0], in[1], states, inPlace, lengths...)
}
