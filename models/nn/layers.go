package nn

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// Linear is y = x W^T + b.
type Linear struct {
	weight *Tensor    // [out, in]
	bias   *mlx.Array // [out], or nil
	heads  int        // that the output is split into; 0 is none
	joins  bool       // the heads of its input

	owner *Weights // frees group; nil for a layer of arrays that somebody else owns
	group *group   // that the layer was last applied with, as its first
}

// group is layers that share an input, ready to be applied.
type group struct {
	layers []*Linear
	ready  *mlx.Layers
}

// NewLinear is the one factory of linear layers: NAME.weight [out, in], which may be packed, and, if asked for, NAME.bias
// [out].
func NewLinear(w *Weights, name string, out, in int, bias bool) *Linear {
	l := &Linear{weight: w.Matrix(name+".weight", out, in), owner: w}
	if bias {
		l.bias = w.Take(name+".bias", out)
	}
	return l
}

// LinearOf makes a layer of plain arrays that somebody else owns: weight [out, in], and bias [out] or nil.
func LinearOf(weight, bias *mlx.Array) *Linear {
	return &Linear{weight: &Tensor{Array: weight}, bias: bias}
}

// Split makes the layer give [T, heads, out/heads].
func (l *Linear) Split(heads int) *Linear {
	l.heads = heads
	return l
}

// Join makes the layer take [T, heads, in/heads].
func (l *Linear) Join() *Linear {
	l.joins = true
	return l
}

// Apply maps [T, in] to [T, out].
func (l *Linear) Apply(x *mlx.Array) *mlx.Array { return Linears(x, l)[0] }

// Linears applies layers that share an input in one operation: on a CPU, x is prepared once for all of them. All or none of
// them join heads.
func Linears(x *mlx.Array, layers ...*Linear) []*mlx.Array {
	ready, done := together(layers)
	defer done()
	return finish(layers, ready.Apply(x), x.DType())
}

// NormedLinears gives x+y, and what Linears gives of that, normalized. Without y the sum is x.
func NormedLinears(n *RMSNorm, x, y *mlx.Array, layers ...*Linear) (sum *mlx.Array, outs []*mlx.Array) {
	ready, done := together(layers)
	defer done()
	sum, outs = ready.ApplyNormed(x, y, n.weight, n.eps, n.plusOne)
	return sum, finish(layers, outs, x.DType())
}

// NormedLinearsKept is NormedLinears, and gives the normalized sum too.
func NormedLinearsKept(n *RMSNorm, x, y *mlx.Array, layers ...*Linear) (sum, normed *mlx.Array, outs []*mlx.Array) {
	ready, done := together(layers)
	defer done()
	sum, normed, outs = ready.ApplyNormedKept(x, y, n.weight, n.eps, n.plusOne)
	return sum, normed, finish(layers, outs, x.DType())
}

// NormedQueries is NormedLinears of what attention needs: sums, and what the first layer gives, queries, of the rows that
// [Batch.Asked] picks, and of all rows what the others give, which is stored.
func NormedQueries(b *Batch, n *RMSNorm, x, y *mlx.Array, layers ...*Linear) (sum *mlx.Array, outs []*mlx.Array) {
	if b.asking == nil {
		return NormedLinears(n, x, y, layers...)
	}
	sum, normed := n.AddApply(x, y)
	return b.Asked(sum), Queries(b, normed, layers...)
}

// Queries is NormedQueries of rows as they are.
func Queries(b *Batch, x *mlx.Array, layers ...*Linear) []*mlx.Array {
	if b.asking == nil {
		return Linears(x, layers...)
	}
	return append(Linears(b.Asked(x), layers[0]), Linears(x, layers[1:]...)...)
}

// ApplyGated is Apply of activation(gate) * up.
func (l *Linear) ApplyGated(activation mlx.Activation, gate, up *mlx.Array) *mlx.Array {
	ready, done := together([]*Linear{l})
	defer done()
	return finish([]*Linear{l}, ready.ApplyGated(activation, gate, up), gate.DType())[0]
}

// finish makes results of a type that scales of float32 have widened, or that a factor of the whole weight is still to be
// multiplied with.
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

// together makes layers ready, once where somebody owns them. The caller calls done after use.
func together(layers []*Linear) (ready *mlx.Layers, done func()) {
	first := layers[0]
	if first.owner == nil {
		l := newLayers(layers)
		return l, l.Free
	}
	if first.group == nil || !slices.Equal(first.group.layers, layers) {
		first.group = &group{slices.Clone(layers), newLayers(layers)}
		first.owner.groups = append(first.owner.groups, first.group.ready)
	}
	return first.group.ready, func() {}
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
	return mlx.NewLayers(parts, layers[0].joins, formats, groups, bits, biased, heads)
}

// Embedding is a table of vectors, looked up by token and, where a model ties them, multiplied as the output head.
type Embedding struct {
	weight *Tensor   // [vocab, hidden]
	dtype  mlx.DType // of the vectors
	scale  float64   // of the vectors, not of the scores
	head   *Linear
}

// NewEmbedding takes NAME.weight [vocab, hidden], which may be packed.
func NewEmbedding(w *Weights, name string, vocab, hidden int) *Embedding {
	weight := w.Matrix(name+".weight", vocab, hidden)
	w.noFactor(name+".weight", weight)
	return &Embedding{weight, w.DType, 1, &Linear{weight: weight, owner: w}}
}

// Scaled makes the embedding multiply vectors by a factor, rounded to their type first.
func (e *Embedding) Scaled(by float64) *Embedding {
	e.scale = by
	return e
}

// Lookup gives the vectors [T, hidden] of tokens [T].
func (e *Embedding) Lookup(tokens *mlx.Array) *mlx.Array {
	if p := e.weight.Packed; p != nil {
		return mlx.PackedTableRows(e.weight.Array, p.Scales, p.Biases, tokens, e.scale, p.Group, p.Bits, p.Mode, e.dtype)
	}
	return mlx.TableRows(e.weight.Array, tokens, e.scale)
}

// Project gives the scores [T, vocab] of rows [T, hidden].
func (e *Embedding) Project(x *mlx.Array) *mlx.Array { return e.head.Apply(x) }

// RMSNorm divides rows by their root mean square and scales them.
type RMSNorm struct {
	weight  *mlx.Array // [hidden], or nil
	eps     float64
	plusOne bool // weights are offsets from 1
}

// NewRMSNorm takes NAME.weight [hidden].
func NewRMSNorm(w *Weights, name string, hidden int, eps float64) *RMSNorm {
	return &RMSNorm{weight: w.Take(name+".weight", hidden), eps: eps}
}

// PlainRMSNorm has no weights.
func PlainRMSNorm(eps float64) *RMSNorm { return &RMSNorm{eps: eps} }

// PlusOne makes the norm multiply by 1 + weight, in float32.
func (n *RMSNorm) PlusOne() *RMSNorm {
	n.plusOne = true
	return n
}

// Apply normalizes the last axis.
func (n *RMSNorm) Apply(x *mlx.Array) *mlx.Array {
	if n.plusOne {
		return mlx.RMSNormPlusOne(x, n.weight, n.eps)
	}
	return mlx.RMSNorm(x, n.weight, n.eps)
}

// AddApply gives x+y, and that normalized. Without y it is x, and that normalized.
func (n *RMSNorm) AddApply(x, y *mlx.Array) (sum, normed *mlx.Array) {
	if y == nil {
		return x, n.Apply(x)
	}
	both := mlx.AddRMSNorm(x, y, n.weight, n.eps, n.plusOne)
	return both[0], both[1]
}
