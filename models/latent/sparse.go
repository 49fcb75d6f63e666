package latent

import (
	"math"

	"github.com/ingotml/ingot/arch"
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

// choice is what the last indexer has chosen in a forward pass: for each segment, the positions [rows, k] of its last
// rows, and 0 for each, or -inf where a row has fewer.
type choice struct{ at, mask []*mlx.Array }

// sparse is the sparse attention of a layer.
type sparse struct {
	indexer *indexer // nil: the layer attends to what the last indexer has chosen
	budget  int
	last    *choice // shared by the layers
	always  bool    // choose positions even if all fit the budget
}

func newIndexer(w *nn.Weights, name string, c *arch.LatentDecoder, rope *nn.Rope) *indexer {
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
	b.LimitTo(1)
	return s.attendChosen(b, layer, x, queries, q, o)
}

// attendChosen lets queries q attend to the stored positions that an indexer chooses. queries are the indexer's.
func (s *sparse) attendChosen(b *nn.Batch, layer int, x, queries, q *mlx.Array, o nn.AttendOptions) *mlx.Array {
	asked := b.QueryRows()
	if s.indexer != nil {
		weights := s.indexer.weights.Apply(mlx.AsType(b.Asked(x), mlx.Float32))
		s.choose(asked, layer, mlx.AsType(queries, mlx.Float32), weights)
	}
	var outs []*mlx.Array
	for i, segment := range asked.Segments {
		stored, _, done := nn.ReadKV(segment, layer)
		rows := mlx.Range(segment.Row, segment.Row+segment.Len)
		at, mask := lastRows(s.last.at[i], segment.Len), lastRows(s.last.mask[i], segment.Len)
		out := gathered(mlx.SliceAxis(q, 0, rows), stored, at, mask, o)
		done(out)
		outs = append(outs, out)
	}
	return mlx.Concatenate(0, outs...)
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

// choose sets what the rows attend to, by queries [A, heads, dim] and weights [A, heads].
func (s *sparse) choose(b *nn.Batch, layer int, queries, weights *mlx.Array) {
	*s.last = choice{}
	x := s.indexer
	weights = mlx.MultiplyScalar(weights, 1/math.Sqrt(float64(x.heads*x.dim)))
	for _, segment := range b.Segments {
		_, keys, done := nn.ReadKV(segment, layer)
		keys = mlx.AsType(keys, mlx.Float32)
		n := keys.Dim(0)
		var at, mask []*mlx.Array
		inBlocks(segment.Len, x.heads*n, func(begin, end int) {
			rows := mlx.Range(segment.Row+begin, segment.Row+end)
			q, w := mlx.SliceAxis(queries, 0, rows), mlx.SliceAxis(weights, 0, rows)
			scores := mlx.MaximumScalar(mlx.MatMul(q, mlx.Transpose(keys)), 0) // [rows, heads, n]
			sums := mlx.Squeeze(mlx.MatMul(mlx.ExpandDims(w, 1), scores), 1)
			best := mlx.Largest(mlx.Add(sums, causal(keys.Thread(), segment.Pos+begin, end-begin, n)), min(s.budget, n))
			at = append(at, best[1])
			mask = append(mask, mlx.Where(mlx.Equal(best[0], infinite(keys.Thread())), best[0], mlx.Zeros(keys.Thread(),
				mlx.Float32, 1)))
		})
		s.last.at = append(s.last.at, mlx.Concatenate(0, at...))
		s.last.mask = append(s.last.mask, mlx.Concatenate(0, mask...))
		done(s.last.at[len(s.last.at)-1])
	}
}

// gathered returns the attention [A, heads, values] of queries [A, heads, dim] over the stored keys [n, dim] at the
// given positions [A, k].
func gathered(q, stored, at, mask *mlx.Array, o nn.AttendOptions) *mlx.Array {
	var outs []*mlx.Array
	k, dim := at.Dim(1), stored.Dim(1)
	inBlocks(q.Dim(0), k*dim, func(begin, end int) {
		rows := mlx.Range(begin, end)
		keys := mlx.AsType(mlx.Take(stored, mlx.SliceAxis(at, 0, rows), 0), mlx.Float32) // [rows, k, dim]
		scores := mlx.MatMul(mlx.AsType(mlx.SliceAxis(q, 0, rows), mlx.Float32), mlx.SwapAxes(keys, 1, 2))
		scores = mlx.Add(mlx.MultiplyScalar(scores, o.Scale), mlx.ExpandDims(mlx.SliceAxis(mask, 0, rows), 1))
		values := mlx.SliceAxis(keys, 2, mlx.Range(0, o.Values))
		outs = append(outs, mlx.AsType(mlx.MatMul(mlx.Softmax(scores, true, -1), values), q.DType()))
	})
	return mlx.Concatenate(0, outs...)
}

// blockElements bounds the elements of the largest array of a block of rows.
const blockElements = 1 << 24

// inBlocks calls fn with ranges of rows that need so many elements each.
func inBlocks(rows, each int, fn func(begin, end int)) {
	size := max(blockElements/max(each, 1), 1)
	for begin := 0; begin < rows; begin += size {
		fn(begin, min(begin+size, rows))
	}
}

// causal returns 0 for the positions [rows, n] that rows from a position on see, and -inf for others.
func causal(t *mlx.Thread, position, rows, n int) *mlx.Array {
	own := mlx.ExpandDims(mlx.Arange(t, float64(position), float64(position+rows), 1, mlx.Int32), 1)
	all := mlx.ExpandDims(mlx.Arange(t, 0, float64(n), 1, mlx.Int32), 0)
	return mlx.Where(mlx.LessEqual(all, own), mlx.Zeros(t, mlx.Float32, 1), infinite(t))
}

func infinite(t *mlx.Thread) *mlx.Array { return mlx.Full(t, math.Inf(-1), mlx.Float32, 1) }

func lastRows(x *mlx.Array, n int) *mlx.Array {
	return mlx.SliceAxis(x, 0, mlx.Range(x.Dim(0)-n, x.Dim(0)))
}
