package deepseek_v4

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// attention has one KV head, whose key is its value. A row attends to a window of positions; most layers also keep
// compressed entries of earlier positions, and attend to those, all or the ones that an indexer chooses. Values are
// rotated because keys are; the output is rotated back by the row's own position.
type attention struct {
	state      int // number of its first cache: of the window
	qDown, kv  *nn.Linear
	qNorm      *nn.Norm
	qUp        *nn.Linear
	kvNorm     *nn.Norm
	headNorm   *nn.Norm // of query heads
	down       *nn.HeadLinear
	up         *nn.Linear
	ropes      ropes
	groups     int
	window     int
	compressed *compressed // nil: the layer only has a window
	options    nn.AttendOptions
}

func newAttention(
	w *nn.Weights, name string, state int, c *arch.DeepseekV4, compression arch.Compression, ropes ropes,
) *attention {
	wide := c.OutGroups * c.OutRank
	a := &attention{
		state:    state,
		qDown:    nn.NewLinear(w, name+".q_a_proj", c.QueryRank, c.Hidden, false),
		qNorm:    nn.NewRMSNorm(w, name+".q_a_norm", c.QueryRank, c.NormEps),
		qUp:      nn.NewLinear(w, name+".q_b_proj", c.Heads*c.HeadDim, c.QueryRank, false).Split(c.Heads),
		kv:       nn.NewLinear(w, name+".kv_proj", c.HeadDim, c.Hidden, false).Split(1),
		kvNorm:   nn.NewRMSNorm(w, name+".kv_norm", c.HeadDim, c.NormEps),
		headNorm: nn.PlainRMSNorm(c.NormEps),
		up:       nn.NewLinear(w, name+".o_b_proj", c.Hidden, wide, false).Join(),
		ropes:    ropes,
		groups:   c.OutGroups,
		window:   c.Window,
		options: nn.AttendOptions{
			Scale: c.AttentionScale(), Window: c.Window, Values: c.HeadDim, Sinks: w.Take(name+".sinks", c.Heads),
		},
	}
	if out := w.Matrix(name+".o_a_proj.weight", wide, c.Heads*c.HeadDim/c.OutGroups); out != nil {
		a.down = nn.NewHeadLinear(w, w.Heads(out, c.OutGroups))
	}
	if compression.Rate > 0 {
		a.compressed = newCompressed(w, name+".compressor", state+1, c, compression, ropes)
	}
	return a
}

// apply returns the attention [A, hidden] of normalized rows x [T, hidden], for the rows that b.Asked selects.
func (a *attention) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	in := nn.Queries(b, x, a.qDown, a.kv)
	down, k := a.qNorm.Apply(in[0]), a.kvNorm.Apply(in[1])
	asked := b.QueryRows()
	q := a.ropes.at(asked, a.headNorm.Apply(a.qUp.Apply(down)))
	k = a.ropes.at(b, k)
	var out *mlx.Array
	if a.compressed == nil {
		out = nn.Attend(b, a.state, q, k, nil, a.options)
	} else {
		nn.WriteKV(b, a.state, k, nil)
		a.compressed.write(b, x)
		b.LimitTo(1) // what is stored and read depends on the position
		out = a.attend(b, x, down, q)
	}
	out = a.ropes.back(asked, out)
	return a.up.Apply(a.down.Apply(mlx.Reshape(out, out.Dim(0), a.groups, -1)))
}

// attend lets queries q [A, heads, dim] attend to their windows and to entries. x are normalized rows [T, hidden], and
// down the latents of the queries [A, rank].
func (a *attention) attend(b *nn.Batch, x, down, q *mlx.Array) *mlx.Array {
	asked, find := b.QueryRows(), a.compressed.finder(b, x, down)
	var outs []*mlx.Array
	for _, s := range asked.Segments {
		first := max(0, s.Pos-a.window+1)
		near, _, done := nn.ReadRows(s, a.state, first, s.Pos+s.Len)
		entries := a.compressed.open(s)
		var parts []*mlx.Array
		inBlocks(s.Len, q.Dim(1)*(a.window+entries.width()), func(begin, end int) {
			from := max(0, s.Pos+begin-a.window+1)
			keys := mlx.SliceAxis(near, 0, mlx.Range(from-first, s.Pos+end-first))
			mask := windowMask(q.Thread(), s.Pos+begin, end-begin, from, a.window)
			rows := mlx.Range(s.Row+begin, s.Row+end)
			far, farMask := find.choose(entries, s, begin, end)
			parts = append(parts, a.joint(mlx.SliceAxis(q, 0, rows), keys, mask, far, farMask))
		})
		out := mlx.Concatenate(0, parts...)
		done(out)
		entries.done(out)
		outs = append(outs, out)
	}
	return mlx.AsType(mlx.Concatenate(0, outs...), q.DType())
}

// joint returns, in float32, the attention [n, heads, dim] of queries q [n, heads, dim] over keys of a window [m, dim]
// and entries, the same [k, dim] for all rows or [n, k, dim]; nil means none. Masks [n, m] and [n, k] are added to the
// scores. The sinks take part in the softmax.
func (a *attention) joint(q, near, nearMask, far, farMask *mlx.Array) *mlx.Array {
	q = mlx.MultiplyScalar(mlx.AsType(q, mlx.Float32), a.options.Scale)
	n, heads := q.Dim(0), q.Dim(1)
	scored := func(keys, mask *mlx.Array) *mlx.Array {
		return mlx.Add(mlx.MatMul(q, mlx.SwapAxes(keys, -1, -2)), mlx.ExpandDims(mask, 1))
	}
	sinks := mlx.BroadcastTo(mlx.Reshape(mlx.AsType(a.options.Sinks, mlx.Float32), 1, heads, 1), n, heads, 1)
	near = mlx.AsType(near, mlx.Float32)
	scores := []*mlx.Array{scored(near, nearMask)}
	if far != nil {
		far = mlx.AsType(far, mlx.Float32)
		scores = append(scores, scored(far, farMask))
	}
	m := near.Dim(0)
	all := mlx.Softmax(mlx.Concatenate(2, append(scores, sinks)...), true, -1)
	out := mlx.MatMul(mlx.SliceAxis(all, 2, mlx.Range(0, m)), near)
	if far == nil {
		return out
	}
	return mlx.Add(out, mlx.MatMul(mlx.SliceAxis(all, 2, mlx.Range(m, m+farMask.Dim(1))), far))
}

// ropes rotate the last channels of heads.
type ropes struct {
	forth, reverse *nn.Rope
	dim            int
}

func newRopes(t *mlx.Thread, w *nn.Weights, r arch.Rope, dim int) ropes {
	return ropes{nn.NewRope(t, w, r, dim).Neighbours(), nn.NewRope(t, w, r, dim).Neighbours().Backwards(w), dim}
}

// at rotates x [T, heads, dim] by the positions of a batch.
func (r ropes) at(b *nn.Batch, x *mlx.Array) *mlx.Array { return r.tail(r.forth, b, x) }

// back undoes at.
func (r ropes) back(b *nn.Batch, x *mlx.Array) *mlx.Array { return r.tail(r.reverse, b, x) }

func (r ropes) tail(rope *nn.Rope, b *nn.Batch, x *mlx.Array) *mlx.Array {
	plain := x.Dim(2) - r.dim
	if plain == 0 {
		return rope.Queries(b, x)
	}
	parts := mlx.Split(x, 2, plain)
	return mlx.Concatenate(2, parts[0], rope.Queries(b, parts[1]))
}

// blockElements bounds the elements of the largest array of a block of rows, and blockRows its rows: what a row's
// window lacks of its block's is computed in vain.
const blockElements, blockRows = 1 << 24, 64

// inBlocks calls fn with ranges of rows that need so many elements each.
func inBlocks(rows, each int, fn func(begin, end int)) {
	size := min(max(blockElements/max(each, 1), 1), blockRows)
	for begin := 0; begin < rows; begin += size {
		fn(begin, min(begin+size, rows))
	}
}
