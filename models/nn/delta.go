package nn

import (
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

// GatedDelta is a Gated DeltaNet layer, a linear attention. Queries, keys and values pass a short causal convolution.
// Each value head keeps a state matrix. Every row decays it, updates it by the delta rule (by the difference between
// the value and the state's prediction for the key), and reads it with its query. The outputs are normalized and gated
// by another projection of the row.
//
// Reference: transformers 5.23, Qwen3_5GatedDeltaNet in models/qwen3_5/modeling_qwen3_5.py.
type GatedDelta struct {
	layer           int
	shape           arch.GatedDelta
	qkv, z, a, b    *Linear
	conv            *mlx.Array // [taps, channels of queries, keys and values]
	unit            *mlx.Array // float32 [key dim]: 1/sqrt(key dim) - 1
	decay           *mlx.Array // float32 [value heads]: -exp(A_log)
	dtBias          *mlx.Array // float32 [value heads]
	norm            *mlx.Array // float32 [value dim]
	unitEps, outEps float64
	out             *Linear
}

// unitEps is added to the sum of squares when a query or key is normalized to unit length.
const unitEps = 1e-6

// NewGatedDelta takes the tensors NAME.in_proj_qkv, in_proj_z, in_proj_a, in_proj_b, conv1d, A_log, dt_bias, norm and
// out_proj of a layer. eps is that of the output norm.
func NewGatedDelta(w *Weights, name string, layer int, d arch.GatedDelta, hidden int, eps float64) *GatedDelta {
	dim, channels := float64(d.KeyDim), 2*d.Keys()+d.Values()
	l := &GatedDelta{
		layer: layer,
		shape: d,
		qkv:   NewLinear(w, name+".in_proj_qkv", channels, hidden, false),
		z:     NewLinear(w, name+".in_proj_z", d.Values(), hidden, false).Split(d.ValueHeads),
		a:     NewLinear(w, name+".in_proj_a", d.ValueHeads, hidden, false),
		b:     NewLinear(w, name+".in_proj_b", d.ValueHeads, hidden, false),
		out:   NewLinear(w, name+".out_proj", hidden, d.Values(), false).Join(),
		// RMSNorm divides by the root of the mean of squares instead of their sum.
		unitEps: unitEps / dim,
		// Queries are not scaled by 1/sqrt(dim): the output norm cancels that scale, except in its eps.
		outEps: eps * dim,
	}
	conv := w.Take(name+".conv1d.weight", channels, 1, d.Kernel)
	dtBias, aLog := w.Take(name+".dt_bias", d.ValueHeads), w.Take(name+".A_log", d.ValueHeads)
	norm := w.Take(name+".norm.weight", d.ValueDim)
	if conv == nil || dtBias == nil || aLog == nil || norm == nil {
		return l
	}
	l.conv = w.Constant(mlx.AsType(mlx.Contiguous(mlx.Transpose(mlx.Squeeze(conv, 1))), w.DType))
	l.dtBias = w.Constant(mlx.AsType(dtBias, mlx.Float32))
	l.decay = w.Constant(mlx.Negative(mlx.Exp(mlx.AsType(aLog, mlx.Float32))))
	l.norm = w.Constant(mlx.AsType(norm, mlx.Float32))
	l.unit = w.Constant(mlx.Full(conv.Thread(), 1/math.Sqrt(dim)-1, mlx.Float32, d.KeyDim))
	return l
}

// AddApply implements [Mixer]. Each segment continues from the state of its sequence.
func (l *GatedDelta) AddApply(b *Batch, n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := NormedLinears(n, x, y, l.qkv, l.z, l.a, l.b)
	return b.Asked(sum), l.apply(b, in)
}

func (l *GatedDelta) apply(b *Batch, in []*mlx.Array) *mlx.Array {
	d := l.shape
	qkv, z, a, beta := in[0], in[1], in[2], mlx.Sigmoid(in[3])
	gate := mlx.Decay(a, l.dtBias, l.decay) // exp(-exp(A_log) softplus(a + dt_bias))

	r := b.recurrence(l.layer, qkv, d.Kernel, []int{d.ValueHeads, d.ValueDim, d.KeyDim})
	mixed := r.convolve(qkv, l.conv, nil, true)
	// Everything up to the gate is float32: rounding errors of the inputs would accumulate in the state.
	parts := mlx.Split(mixed, 1, 2*d.Keys())
	qk := mlx.Reshape(mlx.AsType(parts[0], mlx.Float32), -1, 2*d.KeyHeads, d.KeyDim)
	qk = mlx.RMSNormPlusOne(qk, l.unit, l.unitEps)
	heads := mlx.SplitEven(qk, 2, 1)
	v := mlx.Reshape(mlx.AsType(parts[1], mlx.Float32), -1, d.ValueHeads, d.ValueDim)
	said := r.scan(deltaRows, heads[0], heads[1], v, gate, beta)
	y := mlx.AsType(mlx.RMSNorm(said, l.norm, l.outEps), z.DType())
	return l.out.ApplyGated(mlx.SiLUActivation, b.Asked(z), b.Asked(y))
}

// deltaRows is the gated delta rule over queries, keys, values, gates and beta.
func deltaRows(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.GatedDeltaRows(in[0], in[1], in[2], in[3], in[4], states, false, inPlace, lengths...)
}
