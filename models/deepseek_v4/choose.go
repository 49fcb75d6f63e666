package deepseek_v4

import (
	"math"
	"slices"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// indexer chooses the entries that a row attends to, if there are more than its budget. It has queries of its own, from
// the latent of the row's queries, and an index key for each entry.
type indexer struct {
	keys       *compressor
	q, weights *nn.Linear
	ropes      ropes
	heads, dim int
	budget     int
}

func newIndexer(w *nn.Weights, name string, c *types.DeepseekV4, compression types.Compression, r ropes) *indexer {
	x := c.Index
	return &indexer{
		keys:    newCompressor(w, name, c, x.Dim, compression, r),
		q:       nn.NewLinear(w, name+".q_b_proj", x.Heads*x.Dim, c.QueryRank, false).Split(x.Heads),
		weights: nn.NewLinear(w, name+".scorer.weights_proj", x.Heads, c.Hidden, false),
		ropes:   r, heads: x.Heads, dim: x.Dim, budget: x.Budget,
	}
}

// choose returns the entries that the rows of b.Queried attend to, int32 [A, budget], or nil if they attend to
// all. x are normalized rows [T, hidden], and down the latents of the queries [A, rank].
func (l *compressed) choose(b *nn.Batch, x, down *mlx.Array) *mlx.Array {
	i := l.indexer
	if i == nil {
		return nil
	}
	most := (i.budget+1)*l.rate - 1 // positions without more entries than the budget
	if !slices.ContainsFunc(b.Segments, func(s nn.Segment) bool { return s.Pos+s.Len > most }) {
		b.LimitTo(most)
		return nil
	}
	queried := b.QueryRows()
	q := i.ropes.at(queried, i.q.Apply(down))
	weights := mlx.AsType(i.weights.Apply(b.Queried(x)), mlx.Float32)
	weights = mlx.MultiplyScalar(weights, 1/math.Sqrt(float64(i.heads*i.dim)))
	return nn.ChooseKeys(queried, l.entries, q, weights, i.budget, l.rate)
}
