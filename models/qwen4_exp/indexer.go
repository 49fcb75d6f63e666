package qwen4_exp

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// indexer chooses the blocks of positions that a row attends to. It has queries of its own, and a key for each
// position. The average of the keys of a block, normalized and rotated by the block's first position, is the block's
// key. Those of whole blocks are stored, and the keys of the positions after them, like those of a window.
type indexer struct {
	rows         int // number of the cache of keys
	entries      int // of the cache of blocks' keys
	qk           *nn.Linear
	qNorm, kNorm *nn.Norm
	rope         *nn.Rope // of the first channels
	heads, dim   int
	block        int // positions of a block
	blocks       int // that a row attends to, if there are more
}

func newIndexer(w *nn.Weights, name string, state int, c *types.Qwen4Exp, rope *nn.Rope) *indexer {
	x := c.Index
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, x.Dim, c.NormEps).PlusOne() }
	return &indexer{
		rows: state, entries: state + 1,
		qk:    nn.NewLinear(w, name+".index_qk_proj", (x.Heads+1)*x.Dim, c.Hidden, false).Split(x.Heads + 1),
		qNorm: norm(name + ".q_layernorm"), kNorm: norm(name + ".k_layernorm"),
		rope: rope, heads: x.Heads, dim: x.Dim, block: x.Block, blocks: x.Blocks(),
	}
}

// positions returns the number of positions that a row attends to, at most.
func (x *indexer) positions() int { return x.blocks*x.block + x.block - 1 }

// isDense reports whether all rows attend to all positions.
func (x *indexer) isDense(b *nn.Batch) bool {
	for _, s := range b.Segments {
		if (s.Pos+s.Len)/x.block > x.blocks {
			return false
		}
	}
	return true
}

// write stores the keys of rows x [T, hidden], and those of the blocks that they complete. It returns the queries
// [T, heads, dim].
func (x *indexer) write(b *nn.Batch, rows *mlx.Array) *mlx.Array {
	parts := mlx.Split(x.qk.Apply(rows), 1, x.heads)
	made := make([]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		made[i] = x.complete(s, parts[1])
	}
	nn.WriteKV(b, x.rows, parts[1], nil)
	for i, s := range b.Segments {
		nn.WriteEntries(s, x.entries, made[i], nil)
	}
	return x.rope.Queries(b, x.qNorm.Apply(parts[0]))
}

// complete returns the keys [n, 1, dim] of the blocks that a segment of rows with keys [T, 1, dim] completes. If there
// are none it has one row, which does not matter.
func (x *indexer) complete(s nn.Segment, keys *mlx.Array) *mlx.Array {
	first, last := s.Pos/x.block, (s.Pos+s.Len)/x.block
	all := mlx.SliceAxis(keys, 0, mlx.Range(s.Row, s.Row+max(last*x.block-s.Pos, 1)))
	if first == last {
		return all
	}
	if begin := first * x.block; begin < s.Pos {
		before, _, done := nn.ReadRows(s, x.rows, begin, s.Pos)
		all = mlx.Concatenate(0, mlx.ExpandDims(before, 1), all)
		done(all)
	}
	mean := mlx.Mean(mlx.Reshape(mlx.AsType(all, mlx.Float32), -1, x.block, x.dim), false, 1)
	at := make([]int32, last-first)
	for i := range at {
		at[i] = int32((first + i) * x.block)
	}
	normed := x.kNorm.Apply(mlx.AsType(mean, keys.DType()))
	return x.rope.Queries(&nn.Batch{Positions: mlx.FromSlice(keys.Thread(), at)}, mlx.ExpandDims(normed, 1))
}

// opened are the whole blocks of a segment's sequence.
type opened struct {
	n    int
	keys *mlx.Array // float32 [dim, n]; nil if there are none
	done func(*mlx.Array)
}

// open returns the blocks up to the end of a segment.
func (x *indexer) open(s nn.Segment) opened {
	n := (s.Pos + s.Len) / x.block
	if n == 0 {
		return opened{done: func(*mlx.Array) {}}
	}
	keys, _, done := nn.ReadRows(s, x.entries, 0, n)
	return opened{n, mlx.Transpose(mlx.AsType(keys, mlx.Float32)), done}
}

// choose returns the positions [rows, k] that rows from a position on attend to, by their queries [rows, heads, dim],
// and 0 for each, or -inf for those that do not count.
func (x *indexer) choose(o opened, queries *mlx.Array, position int) (at, mask *mlx.Array) {
	at, mask = x.after(queries.Thread(), position, queries.Dim(0))
	if o.keys == nil {
		return at, mask
	}
	// The reference divides by the root of the dimension, which changes no order.
	scores := mlx.MaximumScalar(mlx.MatMul(mlx.AsType(queries, mlx.Float32), o.keys), 0) // [rows, heads, n]
	sums := mlx.Add(mlx.Sum(scores, false, 1), x.seen(queries.Thread(), position, queries.Dim(0), o.n))
	best := mlx.Largest(sums, min(x.blocks, o.n))
	inside := mlx.Arange(queries.Thread(), 0, float64(x.block), 1, mlx.Int32)
	starts := mlx.MultiplyScalar(mlx.AsType(best[1], mlx.Int32), float64(x.block))
	chosen := mlx.Reshape(mlx.Add(mlx.ExpandDims(starts, 2), inside), queries.Dim(0), -1)
	never := mlx.Full(queries.Thread(), math.Inf(-1), mlx.Float32, 1)
	seen := mlx.Where(mlx.Equal(best[0], never), never, mlx.Zeros(queries.Thread(), mlx.Float32, 1))
	seen = mlx.Repeat(seen, x.block, 1)
	if at == nil {
		return chosen, seen
	}
	return mlx.Concatenate(1, chosen, at), mlx.Concatenate(1, seen, mask)
}

// after returns the positions [rows, block-1] after the last whole block, for rows from a position on, and -inf for
// those after the row's own. Both are nil if there are none.
func (x *indexer) after(t *mlx.Thread, position, rows int) (at, mask *mlx.Array) {
	n := x.block - 1
	if n == 0 {
		return nil, nil
	}
	positions, masks := make([]int32, rows*n), make([]float32, rows*n)
	for i := range rows {
		own := position + i
		first := (own + 1) / x.block * x.block
		for j := range n {
			positions[i*n+j] = int32(min(first+j, own))
			if first+j > own {
				masks[i*n+j] = float32(math.Inf(-1))
			}
		}
	}
	return mlx.FromSlice(t, positions, rows, n), mlx.FromSlice(t, masks, rows, n)
}

// seen returns 0 for the blocks [rows, n] that are whole where rows from a position on are, and -inf for others.
func (x *indexer) seen(t *mlx.Thread, position, rows, n int) *mlx.Array {
	whole := make([]int32, rows)
	for i := range whole {
		whole[i] = int32((position + i + 1) / x.block)
	}
	isWhole := mlx.Less(mlx.Arange(t, 0, float64(n), 1, mlx.Int32), mlx.FromSlice(t, whole, rows, 1))
	return mlx.Where(isWhole, mlx.Zeros(t, mlx.Float32, 1), mlx.Full(t, math.Inf(-1), mlx.Float32, 1))
}
