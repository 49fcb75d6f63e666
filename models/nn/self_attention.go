package nn

import (
	"math"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// NormedAttention is grouped-query attention with queries and keys that are normalized per head before rope.
type NormedAttention struct {
	layer        int
	q, k, v, o   *Linear
	qNorm, kNorm *RMSNorm
	rope         *Rope
	options      AttendOptions
}

// NewNormedAttention takes NAME.q_proj, k_proj, v_proj and o_proj, and NAME.q_norm and k_norm [head size]. window is
// the number of positions that a row sees; 0 means all.
func NewNormedAttention(w *Weights, name string, layer int, c arch.Common, rope *Rope, window int) *NormedAttention {
	heads := func(part string, n int) *Linear {
		return NewLinear(w, name+part, n*c.HeadDim, c.Hidden, c.AttentionBias).Split(n)
	}
	return &NormedAttention{
		layer:   layer,
		q:       heads(".q_proj", c.Heads),
		k:       heads(".k_proj", c.KVHeads),
		v:       heads(".v_proj", c.KVHeads),
		o:       NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.AttentionBias).Join(),
		qNorm:   NewRMSNorm(w, name+".q_norm", c.HeadDim, c.NormEps),
		kNorm:   NewRMSNorm(w, name+".k_norm", c.HeadDim, c.NormEps),
		rope:    rope,
		options: AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Window: window, Rope: rope},
	}
}

// PlusOne makes the norms multiply by 1 + weight.
func (a *NormedAttention) PlusOne() *NormedAttention {
	a.qNorm.PlusOne()
	a.kNorm.PlusOne()
	return a
}

// Scaled sets the scale of the scores. The default is 1/sqrt(head size).
func (a *NormedAttention) Scaled(by float64) *NormedAttention {
	a.options.Scale = by
	return a
}

// AddApply returns x+y [T, hidden] and the attention of the normalized sum, for the rows that [Batch.Asked] selects. If
// y is nil the sum is x.
func (a *NormedAttention) AddApply(b *Batch, n *RMSNorm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, qkv := NormedQueries(b, n, x, y, a.q, a.k, a.v)
	q, k := a.rope.ApplyNormed(b, a.qNorm, a.kNorm, qkv[0], qkv[1])
	return sum, a.o.Apply(Attend(b, a.layer, q, k, qkv[2], a.options))
}

// Kind returns the cache that the layer needs.
func (a *NormedAttention) Kind() cache.Kind { return a.options.Kind() }
