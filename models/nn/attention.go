package nn

import (
	"math"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
)

// AttentionOptions are the differences between the models' attention. The zero value is full attention without
// positions.
type AttentionOptions struct {
	Rope         *Rope   // nil: queries and keys are not rotated
	Window       int     // positions that a row sees, including its own; 0 means all up to its own
	Chunked      bool    // see [AttendOptions]
	Scale        float64 // of the scores; 0 means 1/sqrt(head size)
	SoftCap      float64 // see [AttendOptions]
	QNorm, KNorm *Norm   // of queries and keys, per head and before rope; nil means none
	WholeNorms   bool    // QNorm and KNorm normalize all heads of a row together
	NormsLast    bool    // QNorm and KNorm come after rope
	Growth       *Growth // of queries with their position; nil means none
	Sinks        bool    // each query head has a score without a value: NAME.sinks
	Clip         float64 // queries, keys and values are limited to this size, after whole norms; 0 means none
}

// Attention is grouped-query attention.
type Attention struct {
	layer      int
	heads      [2]int // query heads, KV heads of this rank
	q, k, v, o *Linear
	options    AttentionOptions
	attend     AttendOptions
}

// NewAttention takes NAME.q_proj, k_proj, v_proj and o_proj for a layer, with the biases that c names and the sinks
// that o names.
func NewAttention(w *Weights, name string, layer int, c config.Common, o AttentionOptions) *Attention {
	heads := func(part string, n int) *Linear {
		return NewLinear(w, name+part, n*c.HeadDim, c.Hidden, c.AttentionBias)
	}
	a := &Attention{
		layer:   layer,
		q:       heads(".q_proj", c.Heads),
		k:       heads(".k_proj", c.KVHeads),
		v:       heads(".v_proj", c.KVHeads).Split(c.KVHeads),
		o:       NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.OutputBias).Join(),
		options: o,
		attend:  AttendOptions{Scale: o.Scale, SoftCap: o.SoftCap, Window: o.Window, Chunked: o.Chunked},
	}
	if o.Sinks {
		a.attend.Sinks = w.Take(name+".sinks", c.Heads)
	}
	if o.Scale == 0 {
		a.attend.Scale = 1 / math.Sqrt(float64(c.HeadDim))
	}
	a.heads = [2]int{a.q.weight.own(c.Heads), a.k.weight.own(c.KVHeads)}
	if !o.WholeNorms {
		a.q.Split(c.Heads)
		a.k.Split(c.KVHeads)
	}
	return a
}

// AddApply implements [Mixer].
func (a *Attention) AddApply(b *Batch, n *Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, qkv := NormedQueries(b, n, x, y, a.q, a.k, a.v)
	q, k := a.positioned(b, qkv[0], qkv[1])
	q = a.options.Growth.Apply(b, q)
	return sum, a.o.Apply(Attend(b, a.layer, q, k, a.clip(qkv[2]), a.attend))
}

// positioned normalizes and rotates queries and keys.
func (a *Attention) positioned(b *Batch, q, k *mlx.Array) (positionedQ, positionedK *mlx.Array) {
	o := &a.options
	if !o.WholeNorms {
		q, k = a.clip(q), a.clip(k)
	}
	switch {
	case o.WholeNorms:
		q = mlx.Reshape(a.clip(o.QNorm.Apply(q)), q.Dim(0), a.heads[0], -1)
		k = mlx.Reshape(a.clip(o.KNorm.Apply(k)), k.Dim(0), a.heads[1], -1)
		return o.Rope.Apply(b, q, k)
	case o.NormsLast:
		q, k = o.Rope.Apply(b, q, k)
		return o.QNorm.Apply(q), o.KNorm.Apply(k)
	}
	return o.Rope.ApplyNormed(b, o.QNorm, o.KNorm, q, k)
}

// clip limits elements to the size of the options.
func (a *Attention) clip(x *mlx.Array) *mlx.Array {
	if a.options.Clip == 0 {
		return x
	}
	return mlx.Clip(x, a.options.Clip)
}

// StoredAttention is attention over the stored keys and values of another layer, with queries that are normalized per
// head before rope.
type StoredAttention struct {
	layer   int
	q, o    *Linear
	qNorm   *Norm
	options AttendOptions
}

// NewStoredAttention takes NAME.q_proj, o_proj and q_norm [dim] for heads of dim channels that read the given layer of
// the batch's sequences. It applies the options' Rope to the queries.
func NewStoredAttention(w *Weights, name string, layer int, c config.Common, dim int,
	o AttendOptions) *StoredAttention {
	return &StoredAttention{
		layer:   layer,
		q:       NewLinear(w, name+".q_proj", c.Heads*dim, c.Hidden, c.AttentionBias).Split(c.Heads),
		o:       NewLinear(w, name+".o_proj", c.Hidden, c.Heads*dim, c.OutputBias).Join(),
		qNorm:   NewRMSNorm(w, name+".q_norm", dim, c.NormEps),
		options: o,
	}
}

// Apply normalizes rows h [T, hidden] by n and returns their attention [T, hidden].
func (a *StoredAttention) Apply(b *Batch, n *Norm, h *mlx.Array) *mlx.Array {
	_, queries := NormedLinears(n, h, nil, a.q)
	q := a.options.Rope.Queries(b, a.qNorm.Apply(queries[0]))
	return a.o.Apply(AttendStored(b, a.layer, q, a.options))
}
