// Package latent provides multi-head latent attention (MLA), and the decoder that the model types with it share.
//
// The cache keeps a latent per token, from which a matrix computes each head's key and value, and one rotated key for
// all heads.
//
// Reference: transformers 5.23, models/deepseek_v3/modeling_deepseek_v3.py. https://arxiv.org/abs/2405.04434
package latent

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Attention is multi-head latent attention.
//
// The matrix of the latent is absorbed: each query is multiplied by its head's part of the matrix instead of expanding
// every key, and the attention output, a combination of latents, is expanded to values afterwards. The latents are thus
// keys and values at once, with a single KV head.
type Attention struct {
	layer int

	q       *nn.Linear // nil if queries are computed from a latent of their own
	qDown   *nn.Linear
	qNorm   *nn.Norm
	qUp     *nn.Linear
	latent  *nn.Linear
	keyRope *nn.Linear
	kvNorm  *nn.Norm
	absorb  *nn.HeadLinear // [rank, nope] per head
	values  *nn.HeadLinear // [value, rank] per head
	o       *nn.Linear
	rope    *nn.Rope
	growth  *nn.Growth
	nope    int
	kvScale float64 // of the normalized latents; 0: 1
	sparse  *sparse // nil: attention is dense
	options nn.AttendOptions
}

// NewAttention takes the projections of latent attention under a name, for a layer.
func NewAttention(w *nn.Weights, name string, layer int, c *config.LatentDecoder, rope *nn.Rope) *Attention {
	l := c.Latent
	a := &Attention{
		layer:   layer,
		kvNorm:  nn.NewRMSNorm(w, name+".kv_a_layernorm", l.KVRank, l.Eps),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*l.ValueDim, c.OutputBias).Join(),
		rope:    rope,
		growth:  nn.NewGrowth(l.GrowthBeta, l.GrowthContext),
		nope:    l.NopeDim,
		kvScale: l.KVScale,
		options: nn.AttendOptions{Scale: c.AttentionScale(), Values: l.KVRank, Rope: rope},
	}
	width := c.Heads * (l.NopeDim + l.RopeDim)
	if l.QueryRank > 0 {
		a.qDown = nn.NewLinear(w, name+".q_a_proj", l.QueryRank, c.Hidden, c.AttentionBias)
		a.qNorm = nn.NewRMSNorm(w, name+".q_a_layernorm", l.QueryRank, l.Eps)
		a.qUp = nn.NewLinear(w, name+".q_b_proj", width, l.QueryRank, false).Split(c.Heads)
	} else {
		a.q = nn.NewLinear(w, name+".q_proj", width, c.Hidden, false).Split(c.Heads)
	}
	down := nn.NewLinearParts(w, name+".kv_a_proj_with_mqa", []int{l.KVRank, l.RopeDim}, c.Hidden, c.AttentionBias)
	a.latent, a.keyRope = down[0].Split(1), down[1].Split(1)
	if up := w.Matrix(name+".kv_b_proj.weight", c.Heads*(l.NopeDim+l.ValueDim), l.KVRank); up != nil {
		heads := w.Heads(up, c.Heads)
		nope := w.Rows(heads, 0, l.NopeDim)
		keys, values := w.Across(nope), w.Rows(heads, l.NopeDim, l.NopeDim+l.ValueDim)
		w.Release([]*nn.Tensor{keys, values}, up, heads, nope)
		a.absorb, a.values = nn.NewHeadLinear(w, keys), nn.NewHeadLinear(w, values)
	}
	return a
}

// AddApply implements nn.Mixer.
func (a *Attention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	return b.Queried(sum), a.apply(b, x)
}

// apply returns the attention [A, hidden] of normalized rows [T, hidden], for the rows that b.Queried selects.
func (a *Attention) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	var q, query, latent, k *mlx.Array
	if a.q != nil {
		down := nn.Queries(b, x, a.q, a.latent, a.keyRope)
		q, latent, k = down[0], down[1], down[2]
	} else {
		down := nn.Queries(b, x, a.qDown, a.latent, a.keyRope)
		query = a.qNorm.Apply(down[0])
		q, latent, k = a.qUp.Apply(query), down[1], down[2]
	}
	parts := mlx.Split(q, 2, a.nope) // [T, heads, nope] and [T, heads, rope]
	rotated, k := a.rope.Apply(b, parts[1], k)
	q = a.growth.Apply(b, mlx.Concatenate(2, a.absorb.Apply(parts[0]), rotated))
	latent = a.kvNorm.Apply(latent)
	if a.kvScale != 0 {
		latent = mlx.MultiplyScalar(latent, a.kvScale)
	}
	k = mlx.Concatenate(2, latent, k)
	if a.sparse != nil {
		return a.o.Apply(a.values.Apply(a.sparse.attend(b, a.layer, x, query, q, k, a.options)))
	}
	return a.o.Apply(a.values.Apply(nn.Attend(b, a.layer, q, k, nil, a.options)))
}
