package deepseek_v4

import (
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// compressed is what a layer keeps of positions beyond its window: an entry for every rate positions. An entry is an
// average of projections of their rows, whose weights are a softmax, in each channel, over projected gates. With an
// overlap, it also averages projections of its own of the rows of the entry before it.
//
// The projections of the latest rows are the state of a partial entry. They are kept like the keys of a window.
type compressed struct {
	rows    int // number of the cache of projections
	entries int // of the cache of entries
	rate    int
	main    *compressor
	indexer *indexer // nil: rows attend to all entries
}

func newCompressed(
	w *nn.Weights, name string, state int, c *types.DeepseekV4, compression types.Compression, r ropes,
) *compressed {
	l := &compressed{rows: state, entries: state + 1, rate: compression.Rate}
	l.main = newCompressor(w, name, c, c.HeadDim, compression, r)
	if compression.Overlap {
		l.indexer = newIndexer(w, name+".indexer", c, compression, r)
	}
	return l
}

// compressors returns those of the entries' keys, and of their index keys.
func (l *compressed) compressors() []*compressor {
	if l.indexer == nil {
		return []*compressor{l.main}
	}
	return []*compressor{l.main, l.indexer.keys}
}

// write stores the projections of normalized rows x [T, hidden], and the entries that these complete. On a CPU that is
// one operation, which reads positions when it runs. Otherwise the graph depends on them.
func (l *compressed) write(b *nn.Batch, x *mlx.Array) {
	var layers []*nn.Linear
	for _, c := range l.compressors() {
		layers = append(layers, c.kv, c.gate)
	}
	rows := mlx.Concatenate(1, nn.Linears(x, layers...)...)
	if nn.CanCompress(b, l.entries) {
		nn.Compress(b, l.rows, l.entries, rows, l.parts(), l.main.options())
		return
	}
	b.LimitTo(1)
	made := make([][]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		made[i] = l.complete(s, rows)
	}
	nn.WriteKV(b, l.rows, mlx.ExpandDims(rows, 1), nil)
	for i, s := range b.Segments {
		k, v := made[i][0], (*mlx.Array)(nil)
		if l.indexer != nil {
			v = made[i][1]
		}
		nn.WriteEntries(s, l.entries, k, v)
	}
}

// parts returns the compressors as arguments of an operation.
func (l *compressed) parts() (list []mlx.Compressor) {
	for _, c := range l.compressors() {
		list = append(list, mlx.Compressor{Bias: c.bias, Weight: c.weight})
	}
	return list
}

// complete returns, for each compressor, the entries [n, 1, dim] that a segment of projected rows [T, width] completes.
// If there are none they have one row, which does not matter.
func (l *compressed) complete(s nn.Segment, rows *mlx.Array) []*mlx.Array {
	first, last := s.Pos/l.rate, (s.Pos+s.Len)/l.rate
	begin := first * l.rate
	if l.main.overlaps && first > 0 {
		begin -= l.rate
	}
	all := mlx.SliceAxis(rows, 0, mlx.Range(s.Row, s.Row+max(last*l.rate-s.Pos, 1)))
	if first < last && begin < s.Pos {
		before, _, done := nn.ReadRows(s, l.rows, begin, s.Pos)
		all = mlx.Concatenate(0, before, all)
		done(all)
	}
	var made []*mlx.Array
	at := 0
	for _, c := range l.compressors() {
		part := mlx.SliceAxis(all, 1, mlx.Range(at, at+2*c.width))
		at += 2 * c.width
		if first == last {
			made = append(made, mlx.Reshape(mlx.SliceAxis(part, 1, mlx.Range(0, c.dim)), -1, 1, c.dim))
			continue
		}
		made = append(made, c.entriesOf(part, first, last))
	}
	return made
}

// compressor makes entries of dim channels.
type compressor struct {
	kv, gate   *nn.Linear
	bias       *mlx.Array // float32 [rate, width]: added to the gates, by place in an entry
	norm       *nn.Norm
	weight     *mlx.Array // float32: of the norm
	eps        float64
	ropes      ropes
	rate       int
	dim, width int // width: of projections
	overlaps   bool
}

func newCompressor(
	w *nn.Weights, name string, c *types.DeepseekV4, dim int, compression types.Compression, r ropes,
) *compressor {
	width := dim
	if compression.Overlap {
		width *= 2
	}
	l := &compressor{
		kv:    nn.NewLinear(w, name+".kv_proj", width, c.Hidden, false),
		gate:  nn.NewLinear(w, name+".gate_proj", width, c.Hidden, false),
		norm:  nn.NewRMSNorm(w, name+".kv_norm", dim, c.NormEps),
		eps:   c.NormEps,
		ropes: r, rate: compression.Rate, dim: dim, width: width, overlaps: compression.Overlap,
	}
	if bias := w.Take(name+".position_bias", l.rate, width); bias != nil {
		l.bias = w.Constant(mlx.AsType(bias, mlx.Float32))
	}
	l.weight = l.norm.Wide(w)
	return l
}

func (c *compressor) options() mlx.CompressOptions {
	freqs, scale := c.ropes.forth.Angles()
	return mlx.CompressOptions{Rate: c.rate, Overlap: c.overlaps, Eps: c.eps, Freqs: freqs, Scale: scale}
}

// entriesOf returns the entries [first, last) of projections of their rows, [n, 2*width]. With an overlap these begin
// with those of the entry before first, if there is one.
func (c *compressor) entriesOf(rows *mlx.Array, first, last int) *mlx.Array {
	t := rows.Thread()
	parts := mlx.Split(mlx.AsType(rows, mlx.Float32), 1, c.width)
	kv := mlx.Reshape(parts[0], -1, c.rate, c.width)
	gate := mlx.Add(mlx.Reshape(parts[1], -1, c.rate, c.width), c.bias)
	if c.overlaps {
		kv, gate = c.overlapped(kv, first, 0), c.overlapped(gate, first, math.Inf(-1))
	}
	mean := mlx.Sum(mlx.Multiply(kv, mlx.Softmax(gate, true, 1)), false, 1)
	x := c.norm.Apply(mlx.AsType(mean, rows.DType()))
	at := make([]int32, last-first)
	for i := range at {
		at[i] = int32((first + i) * c.rate)
	}
	return c.ropes.at(&nn.Batch{Positions: mlx.FromSlice(t, at)}, mlx.ExpandDims(x, 1))
}

// overlapped returns [n, 2*rate, dim]: of each entry the first half of the channels of the rows of the one before it,
// then the second half of its own. What is before entry 0 has the given value. x is [n, rate, width], or of one entry
// more if first is not 0.
func (c *compressor) overlapped(x *mlx.Array, first int, before float64) *mlx.Array {
	halves := mlx.Split(x, 2, c.dim)
	earlier, own := halves[0], halves[1]
	n := x.Dim(0)
	earlier = mlx.SliceAxis(earlier, 0, mlx.Range(0, n-1))
	if first > 0 {
		own = mlx.SliceAxis(own, 0, mlx.Range(1, n))
	} else {
		start := mlx.Full(x.Thread(), before, mlx.Float32, 1, c.rate, c.dim)
		if n == 1 {
			earlier = start
		} else {
			earlier = mlx.Concatenate(0, start, earlier)
		}
	}
	return mlx.Concatenate(1, earlier, own)
}
