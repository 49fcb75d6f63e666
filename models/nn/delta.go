package nn

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
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

	states := b.recurrent(l.layer)
	inPlace := true
	lengths := make([]int, len(states))
	tails, memories := make([]*mlx.Array, len(states)), make([]*mlx.Array, len(states))
	for i, c := range states {
		lengths[i] = b.Segments[i].Len
		inPlace = inPlace && !c.Trying()
		if tails[i], memories[i] = c.Arrays(); tails[i] == nil {
			tails[i] = mlx.Zeros(z.Thread(), z.DType(), d.Kernel-1, qkv.Dim(1))
			memories[i] = mlx.Zeros(z.Thread(), mlx.Float32, d.ValueHeads, d.ValueDim, d.KeyDim)
		}
	}
	mixed := mlx.CausalConv(qkv, l.conv, nil, tails, true, false, inPlace, lengths...)
	// Everything up to the gate is float32: rounding errors of the inputs would accumulate in the state.
	parts := mlx.Split(mixed[0], 1, 2*d.Keys())
	qk := mlx.Reshape(mlx.AsType(parts[0], mlx.Float32), -1, 2*d.KeyHeads, d.KeyDim)
	qk = mlx.RMSNormPlusOne(qk, l.unit, l.unitEps)
	heads := mlx.SplitEven(qk, 2, 1)
	v := mlx.Reshape(mlx.AsType(parts[1], mlx.Float32), -1, d.ValueHeads, d.ValueDim)
	outputs := mlx.GatedDeltaRows(heads[0], heads[1], v, gate, beta, memories, false, inPlace, lengths...)
	for i, c := range states {
		c.Advance(mixed[1+i], outputs[1+i], lengths[i])
		if c.Trying() && lengths[i] > 1 {
			s := b.Segments[i]
			take := func(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(s.Row, s.Row+s.Len)) }
			again := rerun{tails[i], memories[i], take(qkv), take(heads[0]), take(heads[1]), take(v), take(gate), take(beta)}
			c.Redo(again.rows, again.arrays(c.Offset() == lengths[i])...)
		}
	}
	y := mlx.AsType(mlx.RMSNorm(outputs[0], l.norm, l.outEps), z.DType())
	return l.out.ApplyGated(mlx.SiLUActivation, b.Asked(z), b.Asked(y))
}

// rerun holds the inputs for replaying a segment's first rows through the state. It needs no products with weights.
type rerun struct{ tail, memory, qkv, q, k, v, gate, beta *mlx.Array }

// arrays returns the arrays that a rerun needs besides the cache's previous state, which does not exist at the start.
func (r rerun) arrays(start bool) []*mlx.Array {
	all := []*mlx.Array{r.qkv, r.q, r.k, r.v, r.gate, r.beta}
	if start {
		all = append(all, r.tail, r.memory)
	}
	return all
}

// rows returns the state after the first n rows. It overwrites the previous state.
func (r rerun) rows(n int) (conv, delta *mlx.Array) {
	first := func(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 0, mlx.Range(0, n)) }
	seen := mlx.Concatenate(0, r.tail, first(r.qkv))
	conv = mlx.Contiguous(mlx.SliceAxis(seen, 0, mlx.Range(n, n+r.tail.Dim(0))))
	outputs := mlx.GatedDeltaRows(first(r.q), first(r.k), first(r.v), first(r.gate), first(r.beta),
		[]*mlx.Array{r.memory}, false, true, n)
	return conv, outputs[1]
}

// recurrent returns the state of a layer for each segment's sequence.
func (b *Batch) recurrent(layer int) []*cache.State {
	states := make([]*cache.State, len(b.Segments))
	for i, s := range b.Segments {
		c, ok := s.Seq.Layers[layer].(*cache.State)
		if !ok {
			panic(&mlx.Error{Message: fmt.Sprintf("gated delta: layer %d has no recurrent state but %T",
				layer, s.Seq.Layers[layer])})
		}
		states[i] = c
	}
	return states
}
