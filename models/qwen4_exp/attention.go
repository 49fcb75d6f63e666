package qwen4_exp

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// attention is grouped-query attention whose output is gated by what is projected together with the queries. If there
// are more blocks of positions than its budget, rows attend to those that the indexer chooses.
type attention struct {
	state        int        // number of its first cache: of keys and values
	q, k, v, o   *nn.Linear // q returns each head's query, then its gate
	qNorm, kNorm *nn.Norm
	rope         *nn.Rope
	dim          int
	options      nn.AttendOptions
	index        *indexer
}

func newAttention(w *nn.Weights, name string, state int, c *types.Qwen4Exp, rope *nn.Rope) *attention {
	norm := func(name string) *nn.Norm { return nn.NewRMSNorm(w, name, c.HeadDim, c.NormEps).PlusOne() }
	kv := c.KVHeads * c.HeadDim
	return &attention{
		state:   state,
		q:       nn.NewLinear(w, name+".q_proj", 2*c.Heads*c.HeadDim, c.Hidden, c.AttentionBias).Split(c.Heads),
		k:       nn.NewLinear(w, name+".k_proj", kv, c.Hidden, c.AttentionBias).Split(c.KVHeads),
		v:       nn.NewLinear(w, name+".v_proj", kv, c.Hidden, c.AttentionBias).Split(c.KVHeads),
		o:       nn.NewLinear(w, name+".o_proj", c.Hidden, c.Heads*c.HeadDim, c.OutputBias).Join(),
		qNorm:   norm(name + ".q_norm"),
		kNorm:   norm(name + ".k_norm"),
		rope:    rope,
		dim:     c.HeadDim,
		options: nn.AttendOptions{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Rope: rope},
		index:   newIndexer(w, name+".indexer", state+1, c, rope),
	}
}

// AddApply implements [nn.Mixer].
func (a *attention) AddApply(b *nn.Batch, n *nn.Norm, x, y *mlx.Array) (sum, out *mlx.Array) {
	x, normed := n.AddApply(x, y)
	qkv := nn.Queries(b, normed, a.q, a.k, a.v)
	both := mlx.Split(qkv[0], 2, a.dim)
	q, gate := both[0], both[1]
	q, k := a.rope.ApplyNormed(b, a.qNorm, a.kNorm, q, qkv[1])
	queries := a.index.write(b, normed)
	b.LimitTo(1) // what the index stores and what is read depend on the position
	if a.index.isDense(b) {
		out = nn.Attend(b, a.state, q, k, qkv[2], a.options)
	} else {
		nn.WriteKV(b, a.state, k, qkv[2])
		out = a.attendChosen(b.QueryRows(), q, b.Queried(queries))
	}
	return b.Queried(x), a.o.ApplyGated(mlx.SigmoidActivation, gate, out)
}

// attendChosen returns the attention [A, heads, dim] of queries q [A, heads, dim] over the stored positions that the
// indexer chooses by its own queries [A, index heads, index dim].
func (a *attention) attendChosen(b *nn.Batch, q, queries *mlx.Array) *mlx.Array {
	var outs []*mlx.Array
	for _, s := range b.Segments {
		k, v, done := nn.ReadHeads(s, a.state)
		blocks := a.index.open(s)
		var parts []*mlx.Array
		inBlocks(s.Len, max(a.index.positions()*k.Dim(0)*k.Dim(2), a.index.heads*blocks.n), func(begin, end int) {
			rows := mlx.Range(s.Row+begin, s.Row+end)
			at, mask := a.index.choose(blocks, mlx.SliceAxis(queries, 0, rows), s.Pos+begin)
			parts = append(parts, gathered(mlx.SliceAxis(q, 0, rows), k, v, at, mask, a.options.Scale))
		})
		out := mlx.Concatenate(0, parts...)
		done(out)
		blocks.done(out)
		outs = append(outs, out)
	}
	return mlx.Concatenate(0, outs...)
}

// gathered returns the attention [n, heads, dim] of queries q [n, heads, dim] over keys and values [kv heads, m, dim]
// at positions [n, k]. The mask [n, k] is added to the scores.
func gathered(q, k, v, at, mask *mlx.Array, scale float64) *mlx.Array {
	n, heads, kvHeads := q.Dim(0), q.Dim(1), k.Dim(0)
	chosen := func(x *mlx.Array) *mlx.Array { return mlx.AsType(mlx.Take(x, at, 1), mlx.Float32) } // [kv heads, n, k, dim]
	grouped := mlx.SwapAxes(mlx.Reshape(mlx.AsType(q, mlx.Float32), n, kvHeads, heads/kvHeads, -1), 0, 1)
	scores := mlx.MultiplyScalar(mlx.MatMul(grouped, mlx.SwapAxes(chosen(k), 2, 3)), scale)
	weights := mlx.Softmax(mlx.Add(scores, mlx.ExpandDims(mask, 1)), true, -1)
	out := mlx.SwapAxes(mlx.MatMul(weights, chosen(v)), 0, 1)
	return mlx.AsType(mlx.Reshape(out, n, heads, -1), q.DType())
}

// blockElements bounds the elements of the largest array of a block of rows.
const blockElements = 1 << 24

// inBlocks calls fn with ranges of rows. A row needs each elements.
func inBlocks(rows, each int, fn func(begin, end int)) {
	size := max(blockElements/max(each, 1), 1)
	for begin := 0; begin < rows; begin += size {
		fn(begin, min(begin+size, rows))
	}
}
