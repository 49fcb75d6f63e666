package deepseek_v4

import (
	"github.com/ingotml/ingot/arch/config"
	"github.com/ingotml/ingot/arch/types"
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
	compressed *compressed // nil: the layer only has a window
	options    nn.AttendOptions
}

func newAttention(
	w *nn.Weights, name string, state int, c *types.DeepseekV4, compression types.Compression, ropes ropes,
) *attention {
	wide := c.OutGroups * c.OutRank
	_, groups := w.Own(name+".o_a_proj.weight", c.OutGroups)
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
		groups:   groups,
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

// apply returns the attention [A, hidden] of normalized rows x [T, hidden], for the rows that b.Queried selects.
func (a *attention) apply(b *nn.Batch, x *mlx.Array) *mlx.Array {
	in := nn.Queries(b, x, a.qDown, a.kv)
	down, k := a.qNorm.Apply(in[0]), a.kvNorm.Apply(in[1])
	queried := b.QueryRows()
	q := a.ropes.at(queried, a.headNorm.Apply(a.qUp.Apply(down)))
	k = a.ropes.at(b, k)
	var out *mlx.Array
	if a.compressed == nil {
		out = nn.Attend(b, a.state, q, k, nil, a.options)
	} else {
		nn.WriteKV(b, a.state, k, nil)
		a.compressed.write(b, x)
		chosen := a.compressed.choose(b, x, down)
		out = nn.AttendEntries(queried, a.state, a.compressed.entries, a.compressed.rate, q, chosen, a.options)
	}
	out = a.ropes.back(queried, out)
	return a.up.Apply(a.down.Apply(mlx.Reshape(out, out.Dim(0), a.groups, -1)))
}

// ropes rotate the last channels of heads.
type ropes struct {
	forth, reverse *nn.Rope
	dim            int
}

func newRopes(t *mlx.Thread, w *nn.Weights, r config.Rope, dim int) ropes {
	return ropes{nn.NewRope(t, w, r, dim).Interleaved(), nn.NewRope(t, w, r, dim).Interleaved().Inverse(w), dim}
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
