package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
)

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
func NewStoredAttention(w *Weights, name string, layer int, c arch.Common, dim int, o AttendOptions) *StoredAttention {
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
