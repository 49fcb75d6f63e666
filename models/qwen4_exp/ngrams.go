package qwen4_exp

import (
	"fmt"
	"math"

	"github.com/ingotml/ingot/arch/types"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/nn"
)

// nGrams adds vectors of n-grams to the residual streams of a row: a value, which each stream gates by how well it
// matches a key, and a convolution of the gated values of rows that are some tokens apart. Key and value are
// projections of vectors that hashes of the row's token and of those before it choose. An n-gram does not reach beyond
// the end of a text.
type nGrams struct {
	state          int // number of its cache
	table          *nn.Embedding
	hashes         [][2]*mlx.Array // of each size of n-grams: the rows of each hash, and where they begin; int64
	multipliers    []*mlx.Array    // int64 [1] of each token of an n-gram, the last one first
	eos            int32
	key, value     *nn.Linear
	keyNorm, query streamNorm
	convNorm       streamNorm
	conv           []*mlx.Array // [1, n*hidden] of each tap
	apart          int          // rows from a tap to the next one
	streams        int
}

// newNGrams takes NAME.ple_embedding.ngram_embedding, key_proj, value_proj, norm_key, norm_query, norm_conv and conv1d.
func newNGrams(t *mlx.Thread, w *nn.Weights, name string, state int, c *types.Qwen4Exp,
	table types.NGramTable) *nGrams {
	g, all := c.NGrams, c.Streams*c.Hidden
	l := &nGrams{
		state:    state,
		table:    nn.NewEmbedding(w, name+".ple_embedding.ngram_embedding", int(table.Total), g.Dim/g.Hashes()),
		eos:      g.EOS,
		key:      nn.NewLinear(w, name+".key_proj", all, g.Dim, false),
		value:    nn.NewLinear(w, name+".value_proj", c.Hidden, g.Dim, false),
		keyNorm:  newStreamNorm(w, name+".norm_key", c),
		query:    newStreamNorm(w, name+".norm_query", c),
		convNorm: newStreamNorm(w, name+".norm_conv", c),
		apart:    g.Size,
		streams:  c.Streams,
	}
	constant := func(list []int64) *mlx.Array { return w.Constant(mlx.FromSlice(t, list)) }
	begin := int64(0)
	for at := 0; at < len(table.Rows); at += g.Heads {
		rows, begins := table.Rows[at:at+g.Heads], make([]int64, g.Heads)
		for i, n := range rows {
			begins[i], begin = begin, begin+n
		}
		l.hashes = append(l.hashes, [2]*mlx.Array{constant(rows), constant(begins)})
	}
	for _, n := range table.Multipliers {
		l.multipliers = append(l.multipliers, constant([]int64{n}))
	}
	if taps, _ := w.Convolution(name+".conv1d", all, g.Kernel, false); taps != nil {
		for i := range g.Kernel {
			l.conv = append(l.conv, w.Constant(mlx.Copy(mlx.SliceAxis(taps, 0, mlx.Range(i, i+1)))))
		}
	}
	return l
}

// apply returns what is added to streams h [T, n, hidden].
func (l *nGrams) apply(b *nn.Batch, h *mlx.Array) *mlx.Array {
	b.LimitTo(1) // the state is not updated in place
	tokens := l.tokens(b)
	in := nn.Linears(l.vectors(b, tokens), l.key, l.value)
	key := l.keyNorm.apply(mlx.Reshape(in[0], h.Dim(0), l.streams, -1))
	match := mlx.Sum(mlx.Multiply(key, l.query.apply(h)), true, 2)
	match = mlx.MultiplyScalar(match, 1/math.Sqrt(float64(h.Dim(2))))
	match = mlx.Multiply(mlx.Sqrt(mlx.MaximumScalar(mlx.Abs(match), 1e-6)), mlx.Sign(match))
	value := mlx.Multiply(mlx.AsType(mlx.Sigmoid(match), h.DType()), mlx.ExpandDims(in[1], 1))
	normed := mlx.Reshape(mlx.AsType(l.convNorm.apply(value), h.DType()), h.Dim(0), -1)
	return mlx.Add(value, mlx.Reshape(l.convolved(b, normed, tokens), h.Shape()...))
}

// cache returns the state of a segment's sequence.
func (l *nGrams) cache(s nn.Segment) *cache.State {
	c, ok := s.Seq.Layers[l.state].(*cache.State)
	if !ok {
		panic(&mlx.Error{Message: fmt.Sprintf("n-grams: layer %d has no recurrent state but %T", l.state,
			s.Seq.Layers[l.state])})
	}
	return c
}

// tokens returns, for each segment, the tokens that its n-grams are made of: of the rows and of those before the first
// one.
func (l *nGrams) tokens(b *nn.Batch) []*mlx.Array {
	all, list := mlx.AsType(b.Tokens, mlx.Int32), make([]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		_, before := l.cache(s).Arrays()
		if before == nil {
			before = mlx.Full(all.Thread(), float64(l.eos), mlx.Int32, len(l.multipliers)-1)
		}
		list[i] = mlx.Concatenate(0, before, mlx.SliceAxis(all, 0, mlx.Range(s.Row, s.Row+s.Len)))
	}
	return list
}

// vectors returns the vectors [T, dim] of the n-grams that end in each row.
func (l *nGrams) vectors(b *nn.Batch, tokens []*mlx.Array) *mlx.Array {
	eos := mlx.FromSlice(b.Tokens.Thread(), []int32{l.eos})
	var hash, last *mlx.Array // of the n-grams so far; their first token
	var ids []*mlx.Array
	for i, multiplier := range l.multipliers {
		var parts []*mlx.Array
		for j, s := range b.Segments {
			begin := len(l.multipliers) - 1 - i
			parts = append(parts, mlx.SliceAxis(tokens[j], 0, mlx.Range(begin, begin+s.Len)))
		}
		token := mlx.Concatenate(0, parts...)
		if i > 1 {
			token = mlx.Where(mlx.Equal(last, eos), eos, token)
		}
		last = token
		product := mlx.Multiply(mlx.AsType(token, mlx.Int64), multiplier)
		if i == 0 {
			hash = product
			continue
		}
		hash = mlx.BitwiseXor(hash, product)
		rows, begins := l.hashes[i-1][0], l.hashes[i-1][1]
		ids = append(ids, mlx.Add(mlx.Remainder(mlx.ExpandDims(hash, 1), rows), begins))
	}
	chosen := mlx.Flatten(mlx.AsType(mlx.Concatenate(1, ids...), mlx.Int32), 0, 1)
	return mlx.Reshape(l.table.Lookup(chosen), b.Rows(), -1)
}

// convolved returns rows x [T, n*hidden] after the convolution, and stores the state after them.
func (l *nGrams) convolved(b *nn.Batch, x *mlx.Array, tokens []*mlx.Array) *mlx.Array {
	tail, context := (len(l.conv)-1)*l.apart, len(l.multipliers)-1
	var outs []*mlx.Array
	for i, s := range b.Segments {
		c := l.cache(s)
		before, _ := c.Arrays()
		if before == nil {
			before = mlx.Zeros(x.Thread(), x.DType(), tail, x.Dim(1))
		}
		seen := mlx.Concatenate(0, before, mlx.SliceAxis(x, 0, mlx.Range(s.Row, s.Row+s.Len)))
		var sum *mlx.Array
		for k, weight := range l.conv {
			tap := mlx.Multiply(mlx.SliceAxis(seen, 0, mlx.Range(k*l.apart, k*l.apart+s.Len)), weight)
			if sum == nil {
				sum = tap
			} else {
				sum = mlx.Add(sum, tap)
			}
		}
		outs = append(outs, mlx.SiLU(sum))
		read := tokens[i]
		after := func(n int) (rows, last *mlx.Array) { // copies, so that they do not hold the whole step
			return mlx.Copy(mlx.SliceAxis(seen, 0, mlx.Range(n, n+tail))),
				mlx.Copy(mlx.SliceAxis(read, 0, mlx.Range(n, n+context)))
		}
		rows, last := after(s.Len)
		c.Advance(rows, last, s.Len)
		if c.Trying() && s.Len > 1 {
			c.Redo(after, seen, read)
		}
	}
	return mlx.Concatenate(0, outs...)
}
