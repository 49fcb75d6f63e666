package glm4_moe_lite

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// latentAttention is multi-head latent attention (MLA). The cache keeps a latent per token, from which a matrix
// computes each head's key and value, and one rotated key for all heads.
//
// The matrix is absorbed: each query is multiplied by its head's part of the matrix instead of expanding every key, and
// the attention output, a combination of latents, is expanded to values afterwards. The latents are thus keys and
// values at once, with a single KV head.
type latentAttention struct {
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
	nope    int
	options nn.AttendOptions
}

func newLatentAttention(w *nn.Weights, name string, layer int, c *arch.Glm4MoeLite, rope *nn.Rope) *latentAttention {
	a := &latentAttention{
		layer:   layer,
		kvNorm:  nn.NewRMSNorm(w, name+".kv_a_layernorm", c.KVRank, c.LatentEps),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.ValueDim, c.OutputBias).Join(),
		rope:    rope,
		nope:    c.NopeDim,
		options: nn.AttendOptions{Scale: c.AttentionScale(), Values: c.KVRank, Rope: rope},
	}
	width := c.Heads * (c.NopeDim + c.RopeDim)
	if c.QueryRank > 0 {
		a.qDown = nn.NewLinear(w, name+".q_a_proj", c.QueryRank, c.Hidden, c.AttentionBias)
		a.qNorm = nn.NewRMSNorm(w, name+".q_a_layernorm", c.QueryRank, c.LatentEps)
		a.qUp = nn.NewLinear(w, name+".q_b_proj", width, c.QueryRank, false).Split(c.Heads)
	} else {
		a.q = nn.NewLinear(w, name+".q_proj", width, c.Hidden, false).Split(c.Heads)
	}
	down := nn.NewLinearParts(w, name+".kv_a_proj_with_mqa", []int{c.KVRank, c.RopeDim}, c.Hidden, c.AttentionBias)
	a.latent, a.keyRope = down[0].Split(1), down[1].Split(1)
	if up := w.Matrix(name+".kv_b_proj.weight", c.Heads*(c.NopeDim+c.ValueDim), c.KVRank); up != nil {
		heads := w.Heads(up, c.Heads)
		nope := w.Rows(heads, 0, c.NopeDim)
		keys, values := w.Transposed(nope), w.Rows(heads, c.NopeDim, c.NopeDim+c.ValueDim)
		w.Release([]*nn.Tensor{keys, values}, up, heads, nope)
		a.absorb, a.values = nn.NewHeadLinear(w, keys), nn.NewHeadLinear(w, values)
	}
	return a
}

// AddApply implements nn.Mixer.
func (a *latentAttention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, x = n.AddApply(x, y)
	return b.Asked(sum), a.apply(b, x)
}

// apply returns the attention [A, hidden] of normalized rows [T, hidden], for the rows that b.Asked selects.
func (a *latentAttention) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	var q, latent, k *mlx.Array
	if a.q != nil {
		down := nn.Queries(b, x, a.q, a.latent, a.keyRope)
		q, latent, k = down[0], down[1], down[2]
	} else {
		down := nn.Queries(b, x, a.qDown, a.latent, a.keyRope)
		q, latent, k = a.qUp.Apply(a.qNorm.Apply(down[0])), down[1], down[2]
	}
	parts := mlx.Split(q, 2, a.nope) // [T, heads, nope] and [T, heads, rope]
	rotated, k := a.rope.Apply(b, parts[1], k)
	q = mlx.Concatenate(2, a.absorb.Apply(parts[0]), rotated)
	k = mlx.Concatenate(2, a.kvNorm.Apply(latent), k)
	return a.o.Apply(a.values.Apply(nn.Attend(b, a.layer, q, k, nil, a.options)))
}
