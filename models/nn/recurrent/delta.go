package recurrent

import (
	"math"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// GatedDelta is a Gated DeltaNet layer, a linear attention. Queries, keys and values pass a short causal convolution.
// Each value head keeps a state matrix. Every row decays it, updates it by the delta rule (by the difference between
// the value and the state's prediction for the key), and reads it with its query. The outputs are normalized and gated
// by another projection of the row.
//
// Reference: transformers 5.23, Qwen3_5GatedDeltaNet in models/qwen3_5/modeling_qwen3_5.py and OlmoHybridGatedDeltaNet
// in models/olmo_hybrid/modeling_olmo_hybrid.py.
type GatedDelta struct {
	deltaRule
	in     []*nn.Linear // queries, keys and values, in one or three; then the gate of the output, a and b
	decay  *mlx.Array   // float32 [value heads]: -exp(A_log)
	dtBias *mlx.Array   // float32 [value heads]
}

// NewGatedDelta takes the tensors NAME.in_proj_qkv, in_proj_z, in_proj_a, in_proj_b, conv1d, A_log, dt_bias, norm and
// out_proj of a layer. eps is for the output norm.
func NewGatedDelta(w *nn.Weights, name string, layer int, d config.GatedDelta, hidden int, eps float64) *GatedDelta {
	return newGatedDelta(w, name, layer, d, hidden, []*nn.Linear{
		nn.NewLinear(w, name+".in_proj_qkv", 2*d.Keys()+d.Values(), hidden, false),
		nn.NewLinear(w, name+".in_proj_z", d.Values(), hidden, false).Split(d.ValueHeads),
		nn.NewLinear(w, name+".in_proj_a", d.ValueHeads, hidden, false),
		nn.NewLinear(w, name+".in_proj_b", d.ValueHeads, hidden, false),
	}, newDeltaRule(w, name, ".norm", ".out_proj", layer, d, hidden, eps))
}

// NewSplitGatedDelta is NewGatedDelta with the names of OLMo: q_proj, k_proj, v_proj, g_proj (the gate), a_proj,
// b_proj, o_norm and o_proj.
func NewSplitGatedDelta(w *nn.Weights, name string, layer int, d config.GatedDelta, hidden int,
	eps float64) *GatedDelta {
	return newGatedDelta(w, name, layer, d, hidden, []*nn.Linear{
		nn.NewLinear(w, name+".q_proj", d.Keys(), hidden, false),
		nn.NewLinear(w, name+".k_proj", d.Keys(), hidden, false),
		nn.NewLinear(w, name+".v_proj", d.Values(), hidden, false),
		nn.NewLinear(w, name+".g_proj", d.Values(), hidden, false).Split(d.ValueHeads),
		nn.NewLinear(w, name+".a_proj", d.ValueHeads, hidden, false),
		nn.NewLinear(w, name+".b_proj", d.ValueHeads, hidden, false),
	}, newDeltaRule(w, name, ".o_norm", ".o_proj", layer, d, hidden, eps))
}

func newGatedDelta(
	w *nn.Weights, name string, layer int, d config.GatedDelta, hidden int, in []*nn.Linear, rule deltaRule,
) *GatedDelta {
	return &GatedDelta{
		deltaRule: rule,
		in:        in,
		decay:     w.Float32(w.Take(name+".A_log", d.ValueHeads), negativeExp),
		dtBias:    w.Float32(w.Take(name+".dt_bias", d.ValueHeads), nil),
	}
}

// AddApply implements [nn.Mixer]. Each segment continues from the state of its sequence.
func (l *GatedDelta) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.in...)
	return b.Queried(sum), l.apply(b, in)
}

func (l *GatedDelta) apply(b *nn.Batch, in []*mlx.Array) *mlx.Array {
	last := len(in) - 3
	qkv, z, a, beta := in[0], in[last], in[last+1], mlx.Sigmoid(in[last+2])
	if last > 1 {
		qkv = mlx.Concatenate(1, in[:last]...)
	}
	if l.shape.Negative {
		beta = mlx.MultiplyScalar(beta, 2)
	}
	gate := mlx.Decay(a, l.dtBias, l.decay) // exp(-exp(A_log) softplus(a + dt_bias))
	said := l.scanned(b, qkv, gate, beta)
	activation := mlx.SiLUActivation
	if l.shape.SigmoidGate {
		activation = mlx.SigmoidActivation
	}
	return l.out.ApplyGated(activation, b.Queried(z), l.normed(b, said, z.DType()))
}

// ColumnDelta is Kimi Delta Attention: a gated delta net with a gate for each column of a state, and low-rank
// projections of these gates and of the output's, whose activation is a sigmoid. There are as many key heads as value
// heads.
//
// Reference: transformers 5.23, KimiLinearDeltaAttention in models/kimi_linear/modeling_kimi_linear.py.
type ColumnDelta struct {
	deltaRule
	in              []*nn.Linear // queries, keys, values, beta, and what the two gates are projected from
	forget, outGate *nn.Linear
	decay           *mlx.Array // float32 [keys]: -exp(A_log)
	dtBias          *mlx.Array // float32 [keys]
}

// NewColumnDelta takes the tensors NAME.q_proj, k_proj, v_proj, b_proj, f_a_proj, f_b_proj, g_a_proj, g_b_proj, conv1d,
// A_log, dt_bias, o_norm and o_proj of a layer. eps is for the output norm.
func NewColumnDelta(w *nn.Weights, name string, layer int, d config.GatedDelta, hidden int, eps float64) *ColumnDelta {
	l := &ColumnDelta{
		deltaRule: newDeltaRule(w, name, ".o_norm", ".o_proj", layer, d, hidden, eps),
		in: []*nn.Linear{
			nn.NewLinear(w, name+".q_proj", d.Keys(), hidden, false),
			nn.NewLinear(w, name+".k_proj", d.Keys(), hidden, false),
			nn.NewLinear(w, name+".v_proj", d.Values(), hidden, false),
			nn.NewLinear(w, name+".b_proj", d.ValueHeads, hidden, false),
			nn.NewLinear(w, name+".f_a_proj", d.KeyDim, hidden, false),
			nn.NewLinear(w, name+".g_a_proj", d.ValueDim, hidden, false),
		},
		forget:  nn.NewLinear(w, name+".f_b_proj", d.Keys(), d.KeyDim, false),
		outGate: nn.NewLinear(w, name+".g_b_proj", d.Values(), d.ValueDim, false).Split(d.ValueHeads),
		dtBias:  w.Float32(w.Take(name+".dt_bias", d.Keys()), nil),
	}
	l.decay = w.Float32(w.Take(name+".A_log", d.KeyHeads), func(a *mlx.Array) *mlx.Array {
		ones := mlx.Full(a.Thread(), 1, mlx.Float32, l.shape.KeyHeads, d.KeyDim)
		return mlx.Reshape(mlx.Multiply(ones, mlx.Reshape(negativeExp(a), -1, 1)), -1)
	})
	return l
}

// AddApply implements [nn.Mixer]. Each segment continues from the state of its sequence.
func (l *ColumnDelta) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, in := nn.NormedLinears(n, x, y, l.in...)
	gate := mlx.Decay(l.forget.Apply(in[4]), l.dtBias, l.decay) // exp(-exp(A_log) softplus(f + dt_bias))
	gate = mlx.Reshape(gate, -1, l.shape.KeyHeads, l.shape.KeyDim)
	said := l.scanned(b, mlx.Concatenate(1, in[:3]...), gate, mlx.Sigmoid(in[3]))
	z := l.outGate.Apply(b.Queried(in[5]))
	return b.Queried(sum), l.out.ApplyGated(mlx.SigmoidActivation, z, l.normed(b, said, z.DType()))
}

// deltaRule is what layers with a delta rule share: the convolution of queries, keys and values, the rule, and the norm
// and projection of its outputs.
type deltaRule struct {
	layer           int
	shape           config.GatedDelta
	conv            *mlx.Array // [taps, channels of queries, keys and values]
	unit            *mlx.Array // float32 [key dim]: 1/sqrt(key dim) - 1
	norm            *mlx.Array // float32 [value dim]
	unitEps, outEps float64
	out             *nn.Linear
}

// unitEps is added to the sum of squares when a query or key is normalized to unit length.
const unitEps = 1e-6

// newDeltaRule takes NAME.conv1d, and the norm and projection of the outputs, whose names are NAME+norm and NAME+out.
func newDeltaRule(
	w *nn.Weights, name, norm, out string, layer int, d config.GatedDelta, hidden int, eps float64,
) deltaRule {
	dim := float64(d.KeyDim)
	l := deltaRule{
		layer: layer,
		shape: ownHeads(w, name, d),
		norm:  w.Float32(w.Take(name+norm+".weight", d.ValueDim), nil),
		out:   nn.NewLinear(w, name+out, hidden, d.Values(), false).Join(),
		// RMSNorm divides by the root of the mean of squares instead of their sum.
		unitEps: unitEps / dim,
		// Queries are not scaled by 1/sqrt(dim): the output norm cancels that scale, except in its eps.
		outEps: eps * dim,
	}
	if l.conv, _ = w.Convolution(name+".conv1d", 2*d.Keys()+d.Values(), d.Kernel, false); l.conv != nil {
		l.unit = w.Constant(mlx.Full(l.conv.Thread(), 1/math.Sqrt(dim)-1, mlx.Float32, d.KeyDim))
	}
	return l
}

// ownHeads returns the shape of this rank's heads.
func ownHeads(w *nn.Weights, name string, d config.GatedDelta) config.GatedDelta {
	_, d.KeyHeads = w.Own(name+".A_log", d.KeyHeads)
	_, d.ValueHeads = w.Own(name+".A_log", d.ValueHeads)
	return d
}

// scanned returns the outputs [T, value heads, value dim] of the rule in float32, for queries, keys and values before
// the convolution.
func (l *deltaRule) scanned(b *nn.Batch, qkv, gate, beta *mlx.Array) *mlx.Array {
	d := l.shape
	r := b.Recurrence(l.layer, qkv, d.Kernel, []int{d.ValueHeads, d.ValueDim, d.KeyDim})
	mixed := r.Convolve(qkv, l.conv, nil, true)
	// Everything up to the gate is float32: rounding errors of the inputs would accumulate in the state.
	parts := mlx.Split(mixed, 1, 2*d.Keys())
	qk := mlx.Reshape(mlx.AsType(parts[0], mlx.Float32), -1, 2*d.KeyHeads, d.KeyDim)
	qk = mlx.RMSNormPlusOne(qk, l.unit, l.unitEps)
	heads := mlx.SplitEven(qk, 2, 1)
	v := mlx.Reshape(mlx.AsType(parts[1], mlx.Float32), -1, d.ValueHeads, d.ValueDim)
	return r.Scan(deltaRows, heads[0], heads[1], v, gate, beta)
}

// normed returns the normalized outputs of the rows that b asks for, in type t.
func (l *deltaRule) normed(b *nn.Batch, said *mlx.Array, t mlx.DType) *mlx.Array {
	return b.Queried(mlx.AsType(mlx.RMSNorm(said, l.norm, l.outEps), t))
}

// deltaRows is the gated delta rule over queries, keys, values, gates and beta.
func deltaRows(in, states []*mlx.Array, inPlace bool, lengths ...int) []*mlx.Array {
	return mlx.GatedDeltaRows(in[0], in[1], in[2], in[3], in[4], states, false, inPlace, lengths...)
}
