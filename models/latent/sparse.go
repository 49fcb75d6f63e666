package latent

import (
	"math"

	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// Sparse attention: an indexer chooses the positions that a row attends to. It has queries of its own, from the latent
// of the row's queries, and keys of its own, one per position, which the cache keeps beside the latents. Up to its
// budget of positions, attention is dense.
//
// Reference: transformers 5.23, models/deepseek_v32/modeling_deepseek_v32.py.

// indexer chooses positions.
type indexer struct {
	q, k, weights *nn.Linear
	norm          *nn.Norm
	rope          *nn.Rope // of the first channels
	heads, dim    int
}

// choice is what the last indexer has chosen in a forward pass: the positions [A, budget] of its rows, and the number
// of rows of each segment.
type choice struct {
	at   *mlx.Array
	rows []int
}

// sparse is the sparse attention of a layer.
type sparse struct {
	indexer *indexer // nil: the layer attends to what the last indexer has chosen
	budget  int
	last    *choice // shared by the layers
	always  bool    // choose positions even if all fit the budget
}

func newIndexer(w *nn.Weights, name string, c *config.LatentDecoder, rope *nn.Rope) *indexer {
	x := c.Index
	return &indexer{
		q:       nn.NewLinear(w, name+".wq_b", x.Heads*x.Dim, c.Latent.QueryRank, false).Split(x.Heads),
		k:       nn.NewLinear(w, name+".wk", x.Dim, c.Hidden, false),
		weights: nn.NewLinear(w, name+".weights_proj", x.Heads, c.Hidden, false),
		norm:    nn.NewLayerNorm(w, name+".k_norm", x.Dim, 1e-6, true),
		rope:    rope, heads: x.Heads, dim: x.Dim,
	}
}

// attend stores keys k [T, 1, dim], and lets queries q [A, heads, dim] attend. x are normalized rows [T, hidden], and
// down the latents of the queries [A, rank].
func (s *sparse) attend(b *nn.Batch, layer int, x, down, q, k *mlx.Array, o nn.AttendOptions) *mlx.Array {
	var queries, keys *mlx.Array
	if s.indexer != nil {
		keys = mlx.ExpandDims(s.indexer.norm.Apply(s.indexer.k.Apply(x)), 1)
		queries, keys = s.indexer.rope.Apply(b, s.indexer.q.Apply(down), keys)
	}
	nn.WriteKV(b, layer, k, keys)
	if s.isDense(b) {
		b.LimitTo(s.budget)
		return nn.AttendStored(b.QueryRows(), layer, q, o)
	}
	queried := b.QueryRows()
	if s.indexer != nil {
		weights := s.indexer.weights.Apply(mlx.AsType(b.Queried(x), mlx.Float32))
		weights = mlx.MultiplyScalar(weights, 1/math.Sqrt(float64(s.indexer.heads*s.indexer.dim)))
		*s.last = choice{at: nn.ChooseKeys(queried, layer, queries, weights, s.budget, 1)}
		for _, segment := range queried.Segments {
			s.last.rows = append(s.last.rows, segment.Len)
		}
	}
	return nn.AttendChosen(queried, layer, q, s.last.of(queried), o)
}

// isDense reports whether all positions of all sequences fit the budget.
func (s *sparse) isDense(b *nn.Batch) bool {
	if s.always {
		return false
	}
	for _, segment := range b.Segments {
		if segment.Pos+segment.Len > s.budget {
			return false
		}
	}
	return true
}

// of returns the positions of a batch's rows, which are the last ones of each segment.
func (c *choice) of(b *nn.Batch) *mlx.Array {
	var rows []int32
	end, same := 0, true
	for i, segment := range b.Segments {
		end, same = end+c.rows[i], same && segment.Len == c.rows[i]
		for row := end - segment.Len; row < end; row++ {
			rows = append(rows, int32(row))
		}
	}
	if same {
		return c.at
	}
	return mlx.Take(c.at, mlx.FromSlice(c.at.Thread(), rows), 0)
}
