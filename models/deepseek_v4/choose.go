package deepseek_v4

import (
	"math"

	"github.com/ingotml/ingot/arch"
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

func newIndexer(w *nn.Weights, name string, c *arch.DeepseekV4, compression arch.Compression, r ropes) *indexer {
	x := c.Index
	return &indexer{
		keys:    newCompressor(w, name, c, x.Dim, compression, r),
		q:       nn.NewLinear(w, name+".q_b_proj", x.Heads*x.Dim, c.QueryRank, false).Split(x.Heads),
		weights: nn.NewLinear(w, name+".scorer.weights_proj", x.Heads, c.Hidden, false),
		ropes:   r, heads: x.Heads, dim: x.Dim, budget: x.Budget,
	}
}

// opened are the entries of a segment's sequence.
type opened struct {
	keys, index *mlx.Array // [n, dim] and [n, index dim]; nil if there are none
	budget      int        // entries that a row attends to, if there are more; 0: all
	done        func(*mlx.Array)
}

// width returns the number of elements that the entries take per row and head.
func (e *opened) width() int {
	if e.keys == nil {
		return 0
	}
	if n := e.keys.Dim(0); e.budget == 0 || n <= e.budget {
		return n
	}
	return e.budget*e.keys.Dim(1) + e.index.Dim(0)
}

// open returns the entries up to the end of a segment.
func (l *compressed) open(s nn.Segment) *opened {
	n := (s.Pos + s.Len) / l.rate
	if n == 0 {
		return &opened{done: func(*mlx.Array) {}}
	}
	e := &opened{}
	e.keys, e.index, e.done = nn.ReadEntries(s, l.entries, n)
	if l.indexer != nil {
		e.budget = l.indexer.budget
	}
	return e
}

// finder finds the entries that rows of a batch attend to.
type finder struct {
	l          *compressed
	q, weights *mlx.Array // the indexer's queries [A, heads, dim] and weights of heads [A, heads] in float32; nil: none
}

// finder returns the finder for the rows that b.Asked selects. x are normalized rows [T, hidden], and down the latents
// of the queries [A, rank].
func (l *compressed) finder(b *nn.Batch, x, down *mlx.Array) finder {
	f := finder{l: l}
	if i := l.indexer; i != nil {
		f.q = mlx.AsType(i.ropes.at(b.QueryRows(), i.q.Apply(down)), mlx.Float32)
		weights := mlx.AsType(i.weights.Apply(b.Asked(x)), mlx.Float32)
		f.weights = mlx.MultiplyScalar(weights, 1/math.Sqrt(float64(i.heads*i.dim)))
	}
	return f
}

// choose returns the entries that rows [begin, end) of a segment attend to, [n, dim] for all or [rows, k, dim] for
// each, and a mask, [rows, n] or [rows, k]. Both are nil if there are none.
func (f finder) choose(e *opened, s nn.Segment, begin, end int) (keys, mask *mlx.Array) {
	if e.keys == nil {
		return nil, nil
	}
	t, n := e.keys.Thread(), e.keys.Dim(0)
	seen := entryMask(t, s.Pos+begin, end-begin, f.l.rate, n)
	if e.budget == 0 || n <= e.budget {
		return e.keys, seen
	}
	rows := mlx.Range(s.Row+begin, s.Row+end)
	q, weights := mlx.SliceAxis(f.q, 0, rows), mlx.SliceAxis(f.weights, 0, rows)
	scores := mlx.MaximumScalar(mlx.MatMul(q, mlx.Transpose(mlx.AsType(e.index, mlx.Float32))), 0) // [rows, heads, n]
	sums := mlx.Squeeze(mlx.MatMul(mlx.ExpandDims(weights, 1), scores), 1)
	best := mlx.Largest(mlx.Add(sums, seen), e.budget)
	never := mlx.Full(t, math.Inf(-1), mlx.Float32, 1)
	mask = mlx.Where(mlx.Equal(best[0], never), never, mlx.Zeros(t, mlx.Float32, 1))
	return mlx.Take(e.keys, best[1], 0), mask
}
