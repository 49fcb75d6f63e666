package nn

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// Linear is y = x W^T + b.
type Linear struct {
	weight *Tensor    // [out, in]
	bias   *mlx.Array // [out], or nil
	heads  int        // heads that the output is split into; 0 means not split
	joins  bool       // the input is split into heads

	name    string   // of the weight's tensor; "" if it is none
	from    *Weights // has the observer; nil for plain arrays
	owner   *Weights // frees groups; nil for a layer whose arrays another owner holds
	*summed          // nil unless the outputs of ranks are added
	groups  []group  // that were applied with this layer as the first: queries are, with and without keys and values
}

// group is a list of layers that share an input, prepared for use.
type group struct {
	layers []*Linear
	ready  *mlx.Layers
}

// NewLinear takes NAME.weight [out, in], which may be packed, and NAME.bias [out] if bias is set.
func NewLinear(w *Weights, name string, out, in int, bias bool) *Linear {
	l := &Linear{weight: w.Matrix(name+".weight", out, in), name: name + ".weight", from: w, owner: w}
	if bias {
		l.bias = w.Take(name+".bias", out)
	}
	if l.weight != nil {
		l.sum(w)
	}
	return l
}

// LinearOf makes a layer of plain arrays that the caller owns: weight [out, in], and bias [out] or nil.
func LinearOf(weight, bias *mlx.Array) *Linear {
	return &Linear{weight: &Tensor{Array: weight}, bias: bias}
}

// Split changes the layer's output to [T, heads, out/heads]. heads are those of all ranks.
func (l *Linear) Split(heads int) *Linear {
	l.heads = l.weight.own(heads)
	return l
}

// Join changes the layer's input to [T, heads, in/heads].
func (l *Linear) Join() *Linear {
	l.joins = true
	return l
}

// Apply maps [T, in] to [T, out].
func (l *Linear) Apply(x *mlx.Array) *mlx.Array {
	if l.summed != nil {
		return l.applySummed(x)
	}
	return Linears(x, l)[0]
}

// Linears applies layers that share an input in one operation: a CPU prepares x once for all of them. Either all or
// none of them join heads.
func Linears(x *mlx.Array, layers ...*Linear) []*mlx.Array {
	observe(x, layers)
	ready, done := prepare(layers)
	defer done()
	return finish(layers, ready.Apply(x), x.DType())
}

// NormedLinears returns x+y, and Linears of the normalized sum. If y is nil the sum is x.
func NormedLinears(n *Norm, x, y *mlx.Array, layers ...*Linear) (sum *mlx.Array, outs []*mlx.Array) {
	if !n.fuses() || observing(layers) != nil {
		sum, normed := n.AddApply(x, y)
		return sum, Linears(normed, layers...)
	}
	ready, done := prepare(layers)
	defer done()
	sum, outs = ready.ApplyNormed(x, y, n.weight, n.eps, n.plusOne)
	return sum, finish(layers, outs, x.DType())
}

// NormedLinearsKept is NormedLinears and also returns the normalized sum.
func NormedLinearsKept(n *Norm, x, y *mlx.Array, layers ...*Linear) (sum, normed *mlx.Array, outs []*mlx.Array) {
	if !n.fuses() || observing(layers) != nil {
		sum, normed = n.AddApply(x, y)
		return sum, normed, Linears(normed, layers...)
	}
	ready, done := prepare(layers)
	defer done()
	sum, normed, outs = ready.ApplyNormedKept(x, y, n.weight, n.eps, n.plusOne)
	return sum, normed, finish(layers, outs, x.DType())
}

// NormedQueries is NormedLinears for attention. The sum and the output of the first layer, the queries, are those of
// the rows that [Batch.Queried] selects. The other layers, whose outputs are stored, process all rows.
func NormedQueries(b *Batch, n *Norm, x, y *mlx.Array, layers ...*Linear) (sum *mlx.Array, outs []*mlx.Array) {
	if b.queryBatch == nil {
		return NormedLinears(n, x, y, layers...)
	}
	sum, normed := n.AddApply(x, y)
	return b.Queried(sum), Queries(b, normed, layers...)
}

// Queries is NormedQueries for rows that are already normalized.
func Queries(b *Batch, x *mlx.Array, layers ...*Linear) []*mlx.Array {
	if b.queryBatch == nil {
		return Linears(x, layers...)
	}
	return append(Linears(b.Queried(x), layers[0]), Linears(x, layers[1:]...)...)
}

// ApplyGated is Apply of activation(gate) * up.
func (l *Linear) ApplyGated(activation mlx.Activation, gate, up *mlx.Array) *mlx.Array {
	if observing([]*Linear{l}) != nil || l.summed.pads() {
		return l.Apply(mlx.Multiply(activate(activation, gate), up))
	}
	ready, done := prepare([]*Linear{l})
	defer done()
	if l.summed != nil {
		return l.total(ready.ApplyGated(activation, gate, up), gate.DType())
	}
	return finish([]*Linear{l}, ready.ApplyGated(activation, gate, up), gate.DType())[0]
}

// finish applies the tensors' global factors and biases, and converts outputs that float32 scales have widened back to
// type d.
func finish(layers []*Linear, outs []*mlx.Array, d mlx.DType) []*mlx.Array {
	for i, l := range layers {
		y := outs[i]
		if g := l.weight.factor(); g != 1 {
			y = mlx.MultiplyScalar(mlx.AsType(y, mlx.Float32), g)
			if l.bias != nil {
				b := l.bias
				if l.heads > 0 {
					b = mlx.Reshape(b, l.heads, -1)
				}
				y = mlx.Add(y, mlx.AsType(b, mlx.Float32))
			}
		}
		if p := l.weight.Packed; p != nil && y.DType() != d {
			y = mlx.AsType(y, d)
		}
		outs[i] = y
	}
	return outs
}

// prepare returns the prepared layers. They are cached if the first layer has an owner. The caller calls done after
// use.
func prepare(layers []*Linear) (ready *mlx.Layers, done func()) {
	first := layers[0]
	if first.owner == nil {
		l := newLayers(layers)
		return l, l.Free
	}
	i := slices.IndexFunc(first.groups, func(g group) bool { return slices.Equal(g.layers, layers) })
	if i < 0 {
		i = len(first.groups)
		first.groups = append(first.groups, group{slices.Clone(layers), newLayers(layers)})
		first.owner.groups = append(first.owner.groups, first.groups[i].ready)
	}
	return first.groups[i].ready, func() {}
}

func newLayers(layers []*Linear) *mlx.Layers {
	var parts []*mlx.Array
	n := len(layers)
	numbers := make([]int, 5*n)
	formats, groups, bits, biased, heads := numbers[:n], numbers[n:2*n], numbers[2*n:3*n], numbers[3*n:4*n], numbers[4*n:]
	for i, l := range layers {
		formats[i], groups[i], bits[i] = l.weight.packing()
		parts, heads[i] = append(parts, l.weight.present()...), l.heads
		if l.bias != nil && l.weight.factor() == 1 {
			biased[i] = 1
			parts = append(parts, l.bias)
		}
	}
	ready := mlx.NewLayers(parts, layers[0].joins, formats, groups, bits, biased, heads)
	ready.Wide = layers[0].summed != nil
	return ready
}

// Embedding is a table of vectors, looked up by token. In models with tied embeddings it is also the output head.
type Embedding struct {
	weight *Tensor   // [vocab, hidden]
	dtype  mlx.DType // of the vectors
	scale  float64   // of the vectors, not of the logits
	head   *Linear
	ranks  *mlx.Group // that have the vectors of some tokens each; nil if weight is whole
}

// NewEmbedding takes NAME.weight [vocab, hidden], which may be packed.
func NewEmbedding(w *Weights, name string, vocab, hidden int) *Embedding {
	weight := w.Matrix(name+".weight", vocab, hidden)
	w.noFactor(name+".weight", weight)
	e := &Embedding{
		weight: weight, dtype: w.DType, scale: 1, head: &Linear{weight: weight, name: name + ".weight", from: w, owner: w},
	}
	if w.divides(name + ".weight") {
		e.ranks = w.ranks
	}
	return e
}

// only makes Project compute the logits of some tokens: those that this rank has, if others have the others.
func (e *Embedding) only(w *Weights, tokens shard.Range) {
	if e.weight != nil && e.ranks == nil {
		e.head.weight = w.Rows(e.weight, int(tokens.Begin), int(tokens.End))
	}
}

// Scaled makes Lookup multiply vectors by a factor, which is first rounded to their type.
func (e *Embedding) Scaled(by float64) *Embedding {
	e.scale = by
	return e
}

// Lookup returns the vectors [T, hidden] of tokens [T].
func (e *Embedding) Lookup(tokens *mlx.Array) *mlx.Array {
	if e.ranks != nil {
		return e.lookUpOwn(tokens)
	}
	if p := e.weight.Packed; p != nil {
		return mlx.PackedTableRows(e.weight.Array, p.Scales, p.Biases, tokens, e.scale, p.Group, p.Bits, p.Mode, e.dtype)
	}
	return mlx.TableRows(e.weight.Array, tokens, e.scale)
}

// Project returns the logits [T, vocab] of rows [T, hidden].
func (e *Embedding) Project(x *mlx.Array) *mlx.Array { return e.head.Apply(x) }

// HeadLinear multiplies each head by a matrix of its own.
type HeadLinear struct {
	bank  *bank
	heads int
}

// NewHeadLinear takes matrices [heads, out, in], which may be packed.
func NewHeadLinear(w *Weights, matrices *Tensor) *HeadLinear {
	return &HeadLinear{bankOf(w, matrices), matrices.Array.Dim(0)}
}

// Apply maps [T, heads, in] to [T, heads, out].
func (l *HeadLinear) Apply(x *mlx.Array) *mlx.Array {
	t, rows := x.Thread(), x.Dim(0)
	if t.Info().GPU && l.bank.transposed != nil {
		return mlx.SwapAxes(mlx.MatMul(mlx.SwapAxes(x, 0, 1), l.bank.transposed), 0, 1)
	}
	of, head := make([]uint32, rows*l.heads), make([]uint32, rows*l.heads)
	for i := range of {
		of[i], head[i] = uint32(i), uint32(i%l.heads)
	}
	indices := func(list []uint32) *mlx.Array { return mlx.FromSlice(t, list, rows, l.heads) }
	y := l.bank.apply(mlx.ExpandDims(x, 2), indices(of), indices(head), false)
	return mlx.Squeeze(y, 2)
}

// observing returns the observer of layers that share an input, or nil.
func observing(layers []*Linear) Observer {
	if from := layers[0].from; from != nil {
		return from.observer
	}
	return nil
}

// observe tells the observer, if there is one, the input of layers.
func observe(x *mlx.Array, layers []*Linear) {
	o := observing(layers)
	if o == nil {
		return
	}
	var names []string
	for _, l := range layers {
		if n := len(names); l.name != "" && (n == 0 || names[n-1] != l.name) {
			names = append(names, l.name)
		}
	}
	if len(names) > 0 {
		o.Input(names, mlx.Reshape(x, x.Dim(0), -1))
	}
}
