package gemma4

import (
	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// ownAttention is grouped-query attention without scaling of scores. Queries, keys and values are normalized per head,
// values without weights.
type ownAttention struct {
	index               int
	q, k, v, o          *nn.Linear // v is nil if the values are the keys before norm and rope
	qNorm, kNorm, vNorm *nn.Norm
	options             nn.AttendOptions
}

// Attention normalizes rows h [T, hidden] by n, which may be nil, and returns their attention [A, hidden], for the rows
// that b.Queried selects.
type Attention interface {
	Apply(b *nn.Batch, n *nn.Norm, h *mlx.Array) *mlx.Array
}

// NewAttention builds the attention of layer i.
func NewAttention(w *nn.Weights, name string, c *types.Gemma4, i int, full, sliding *nn.Rope) Attention {
	l := c.Layer[i]
	options := nn.AttendOptions{Scale: 1, Rope: full}
	if l.Sliding {
		options.Rope, options.Window = sliding, c.Window
	}
	if c.Shared(i) {
		return nn.NewStoredAttention(w, name, l.KV, c.Common, l.HeadDim, options)
	}
	heads := func(part string, n int) *nn.Linear {
		return nn.NewLinear(w, name+part, n*l.HeadDim, c.Hidden, c.AttentionBias).Split(n)
	}
	a := &ownAttention{
		index:   i,
		q:       heads(".q_proj", c.Heads),
		k:       heads(".k_proj", l.KVHeads),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*l.HeadDim, c.OutputBias).Join(),
		qNorm:   nn.NewRMSNorm(w, name+".q_norm", l.HeadDim, c.NormEps),
		kNorm:   nn.NewRMSNorm(w, name+".k_norm", l.HeadDim, c.NormEps),
		vNorm:   nn.PlainRMSNorm(c.NormEps),
		options: options,
	}
	if l.Sliding || !c.KEqV {
		a.v = heads(".v_proj", l.KVHeads)
	}
	return a
}

// Apply implements [Attention].
func (a *ownAttention) Apply(b *nn.Batch, n *nn.Norm, h *mlx.Array) *mlx.Array {
	var q, k, v *mlx.Array
	if a.v == nil {
		_, qk := nn.NormedQueries(b, n, h, nil, a.q, a.k)
		q, k, v = qk[0], qk[1], qk[1]
	} else {
		_, qkv := nn.NormedQueries(b, n, h, nil, a.q, a.k, a.v)
		q, k, v = qkv[0], qkv[1], qkv[2]
	}
	q, k = a.options.Rope.ApplyNormed(b, a.qNorm, a.kNorm, q, k)
	return a.o.Apply(nn.Attend(b, a.index, q, k, a.vNorm.Apply(v), a.options))
}
