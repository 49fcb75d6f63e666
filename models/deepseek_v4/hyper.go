package deepseek_v4

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Hyper-connections: instead of one residual stream there are n. A block reads a combination of them; its output is
// added to each with a factor, and the streams are mixed by a matrix whose rows and columns sum to 1. All of these
// numbers are computed from the streams, for each row, in float32.
//
// https://arxiv.org/abs/2512.24880

// coefficients computes numbers of each row from its streams.
type coefficients struct {
	fn          *mlx.Array // [n*hidden, numbers]
	scale, base *mlx.Array // [numbers]
	normEps     float64
}

// newCoefficients takes NAMEfn [numbers, n*hidden], NAMEbase [numbers] and NAMEscale, a factor for each group of
// numbers.
func newCoefficients(w *nn.Weights, name string, c *types.DeepseekV4, groups ...int) coefficients {
	numbers := 0
	for _, n := range groups {
		numbers += n
	}
	fn := w.Take(name+"fn", numbers, c.Streams.Count*c.Hidden)
	base, scale := w.Take(name+"base", numbers), w.Take(name+"scale", len(groups))
	if fn == nil || base == nil || scale == nil {
		return coefficients{}
	}
	single := func(x *mlx.Array) *mlx.Array { return mlx.AsType(x, mlx.Float32) }
	var factors []*mlx.Array
	for i, n := range groups {
		factors = append(factors, mlx.BroadcastTo(mlx.SliceAxis(single(scale), 0, mlx.Range(i, i+1)), n))
	}
	return coefficients{
		fn:      w.Constant(mlx.Transpose(single(fn))),
		scale:   w.Constant(mlx.Contiguous(mlx.Concatenate(0, factors...))),
		base:    w.Constant(single(base)),
		normEps: c.NormEps,
	}
}

// of returns the weights [mlx.StreamWeights] of rows with streams [T, n, hidden], and the streams in float32.
func (k *coefficients) of(h *mlx.Array, iterations int, eps float64) (weights []*mlx.Array, streams *mlx.Array) {
	streams = mlx.AsType(h, mlx.Float32)
	x := mlx.RMSNorm(mlx.Reshape(streams, h.Dim(0), -1), nil, k.normEps)
	return mlx.StreamWeights(mlx.MatMul(x, k.fn), k.scale, k.base, h.Dim(1), iterations, eps), streams
}

// combined returns the sum [T, hidden] of streams [T, n, hidden] with weights [T, 1, n].
func combined(weights, streams *mlx.Array, to mlx.DType) *mlx.Array {
	return mlx.AsType(mlx.Squeeze(mlx.MixRows(streams, weights, nil, nil), 1), to)
}

// collapse combines the streams before the last norm.
type collapse struct {
	coefficients
	eps float64
}

func newCollapse(w *nn.Weights, name string, c *types.DeepseekV4) *collapse {
	return &collapse{newCoefficients(w, name, c, c.Streams.Count), c.Streams.Eps}
}

func (l *collapse) apply(h *mlx.Array) *mlx.Array {
	weights, streams := l.of(h, 0, l.eps)
	return combined(weights[0], streams, h.DType())
}

// hyper is the hyper-connection of a block.
type hyper struct {
	coefficients
	types.HyperStreams
}

func newHyper(w *nn.Weights, name string, c *types.DeepseekV4) *hyper {
	n := c.Streams.Count
	return &hyper{newCoefficients(w, name, c, n, n, n*n), c.Streams}
}

// streams are the streams that a block has read.
type streams struct {
	in, all   *mlx.Array // the block's input [T, hidden], and the streams [T, n, hidden] in float32
	post, mix *mlx.Array // the factors [T, n] of its output, and the weights [T, n, n] of the streams
}

// read returns the input of a block, and what write needs.
func (l *hyper) read(h *mlx.Array) streams {
	weights, all := l.of(h, max(l.Iterations, 1), l.Eps)
	return streams{in: combined(weights[0], all, h.DType()), all: all, post: weights[1], mix: weights[2]}
}

// queried returns what write needs for the rows that b.Queried selects.
func (s streams) queried(b *nn.Batch) streams {
	return streams{all: b.Queried(s.all), post: b.Queried(s.post), mix: b.Queried(s.mix)}
}

// write returns the streams [T, n, hidden] after a block with output [T, hidden].
func (s streams) write(out *mlx.Array) *mlx.Array {
	return mlx.AsType(mlx.MixRows(s.all, s.mix, mlx.AsType(out, mlx.Float32), s.post), out.DType())
}
