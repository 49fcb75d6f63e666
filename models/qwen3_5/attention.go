package qwen3_5

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// attention is grouped-query attention with an output gate that is projected together with the queries.
type attention struct {
	layer        int
	q, k, v, o   *nn.Linear // q returns each head's query, then its gate
	qNorm, kNorm *nn.Norm
	rope         *nn.Rope
	dim          int
	options      nn.AttendOptions
}

func newAttention(w *nn.Weights, name string, layer int, c *types.Qwen35, rope *nn.Rope) *attention {
	return &attention{
		layer:   layer,
		q:       nn.NewLinear(w, name+".q_proj", 2*c.Heads*c.HeadDim, c.Hidden, c.AttentionBias).Split(c.Heads),
		k:       nn.NewLinear(w, name+".k_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias).Split(c.KVHeads),
		v:       nn.NewLinear(w, name+".v_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias).Split(c.KVHeads),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.OutputBias).Join(),
		qNorm:   nn.NewRMSNorm(w, name+".q_norm", c.HeadDim, c.NormEps).PlusOne(),
		kNorm:   nn.NewRMSNorm(w, name+".k_norm", c.HeadDim, c.NormEps).PlusOne(),
		rope:    rope,
		dim:     c.HeadDim,
		options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Rope: rope},
	}
}

// AddApply implements nn.Mixer.
func (a *attention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	sum, qkv := nn.NormedQueries(b, n, x, y, a.q, a.k, a.v)
	both := mlx.Split(qkv[0], 2, a.dim)
	q, gate := both[0], both[1]
	q, k := a.rope.ApplyNormed(b, a.qNorm, a.kNorm, q, qkv[1])
	return sum, a.o.ApplyGated(mlx.SigmoidActivation, gate, nn.Attend(b, a.layer, q, k, qkv[2], a.options))
}
