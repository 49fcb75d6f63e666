package qwen4_exp

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// streamNorm is an RMSNorm of each residual stream, with weights of its own that are offsets from 1.
type streamNorm struct {
	weight *mlx.Array // float32 [n, hidden]: 1 + w
	eps    float64
}

// newStreamNorm takes NAME.weight [n*hidden].
func newStreamNorm(w *nn.Weights, name string, c *types.Qwen4Exp) streamNorm {
	weight := w.Take(name+".weight", c.Streams*c.Hidden)
	return streamNorm{w.Float32(weight, func(a *mlx.Array) *mlx.Array {
		return mlx.Reshape(mlx.AddScalar(a, 1), c.Streams, c.Hidden)
	}), c.NormEps}
}

// apply normalizes streams [T, n, hidden]. The result is float32.
func (n streamNorm) apply(h *mlx.Array) *mlx.Array {
	return mlx.Multiply(mlx.RMSNorm(mlx.AsType(h, mlx.Float32), nil, n.eps), n.weight)
}

// reader makes the input of a block from the residual streams: the mean of the normalized streams, each channel with a
// gate, from a product of low rank. The block's output is added to each stream with a factor.
type reader struct {
	norm     streamNorm
	down, up *nn.Linear
	factors  *nn.Linear // nil: nothing is written
	mean     *mlx.Array // float32 [1, n]: 1/n
	n        int
}

// newReader takes NAME.hc_norm, input_mix_weight_down, input_mix_weight_up and, if the block writes,
// block_inject_weight.
func newReader(w *nn.Weights, name string, c *types.Qwen4Exp, writes bool) *reader {
	all := c.Streams * c.Hidden
	r := &reader{
		norm: newStreamNorm(w, name+".hc_norm", c),
		down: nn.NewLinear(w, name+".input_mix_weight_down", c.StreamRank, all, false),
		up:   nn.NewLinear(w, name+".input_mix_weight_up", all, c.StreamRank, false),
		n:    c.Streams,
	}
	if r.norm.weight != nil {
		r.mean = w.Constant(mlx.Full(r.norm.weight.Thread(), 1/float64(c.Streams), mlx.Float32, 1, c.Streams))
	}
	if writes {
		r.factors = nn.NewLinear(w, name+".block_inject_weight", c.Streams, all, false)
	}
	return r
}

// read returns the input [T, hidden] of a block for streams h [T, n, hidden], and the factors [T, n] of its output.
func (r *reader) read(h *mlx.Array) (in, factors *mlx.Array) {
	normed := mlx.AsType(r.norm.apply(h), h.DType())
	layers := []*nn.Linear{r.down}
	if r.factors != nil {
		layers = append(layers, r.factors)
	}
	outs := nn.Linears(mlx.Reshape(normed, h.Dim(0), -1), layers...)
	low := mlx.SiLU(mlx.MultiplyScalar(outs[0], 1/float64(r.n)))
	gates := mlx.Reshape(mlx.Sigmoid(r.up.Apply(low)), h.Dim(0), r.n, -1)
	in = mlx.Squeeze(mlx.MixRows(mlx.Multiply(gates, normed), r.mean, nil, nil), 1)
	if r.factors != nil {
		scores := mlx.MultiplyScalar(mlx.AsType(outs[1], mlx.Float32), 1/float64(r.n))
		factors = mlx.MultiplyScalar(mlx.Sigmoid(scores), 2)
	}
	return in, factors
}

// write returns streams [T, n, hidden] after a block with output [T, hidden].
func write(h, out, factors *mlx.Array) *mlx.Array { return mlx.MixRows(h, nil, out, factors) }
