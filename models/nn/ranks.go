package nn

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// Blocks whose tensors are divided over ranks end in a matrix with divided inputs. Its products are float32, are added
// up over the ranks, and then rounded once.

// ofWhole returns the shape of what t is of a tensor with the given shape.
func ofWhole(t *Tensor, shape []int) []int {
	if t.Part == nil || t.Part.Axis >= len(shape) {
		return shape
	}
	own := slices.Clone(shape)
	own[t.Part.Axis] = int(t.Part.Len())
	return own
}

// own returns how many of n equal parts of a tensor's divided axis this rank has.
func (t *Tensor) own(n int) int {
	if t == nil || t.Part == nil {
		return n
	}
	return int(t.Part.Own() * int64(n) / t.Part.Of)
}

// Own returns which of n things this rank has, such as heads, that are divided as the named tensor is: count of them
// from first on.
func (w *Weights) Own(name string, n int) (first, count int) {
	t := w.tensors[name]
	if count = t.own(n); count == n {
		return 0, n
	}
	return int((t.Part.Ranges[0].Begin + t.Part.Before) * int64(n) / t.Part.Of), count
}

// divides reports whether this rank has only a part of a tensor.
func (w *Weights) divides(name string) bool {
	t := w.tensors[name]
	return t != nil && t.Part != nil
}

// summed is what adds up the outputs of a linear layer over ranks.
type summed struct {
	ranks         *mlx.Group
	before, after *mlx.Array // zeros [in], which surround a row; nil means none
	partial       bool       // the caller adds up the outputs
}

// sum makes l the layer of a matrix with divided inputs, if it is one.
func (l *Linear) sum(w *Weights) {
	part := l.weight.Part
	if part == nil || !part.Sum {
		return
	}
	l.summed = &summed{ranks: w.ranks}
	if w.ranks.Rank() != 0 {
		l.bias = nil // it is added once
	}
	zeros := func(n int64) *mlx.Array {
		if n == 0 {
			return nil
		}
		return w.Constant(mlx.Zeros(l.weight.Array.Thread(), mlx.Float32, int(n)))
	}
	l.summed.before, l.summed.after = zeros(part.Before), zeros(part.After)
}

// Beside makes the outputs of the block this rank's share of them, which experts add up together with theirs.
func (m *MLP) Beside(e *Experts) {
	if e.own != nil {
		m.Down.inPart()
	}
}

// Share returns this rank's share of the output for rows x of a block beside the experts, for [Shared.X]; nil if it has
// none.
func (e *Experts) Share(m *MLP, x *mlx.Array) *mlx.Array {
	if m.Down.summed == nil && !e.own.once() {
		return nil
	}
	return m.Apply(x)
}

// inPart makes the outputs of a layer with divided inputs this rank's share of them, in float32, for experts
// that the ranks add up together with it.
func (l *Linear) inPart() {
	if l.summed != nil {
		l.summed.partial = true
	}
}

// applySummed is Apply for a layer with divided inputs.
func (l *Linear) applySummed(x *mlx.Array) *mlx.Array {
	observe(x, []*Linear{l})
	ready, done := prepare([]*Linear{l})
	defer done()
	return l.total(ready.Apply(l.surrounded(x, l.joins)), x.DType())
}

// total adds up the outputs of all ranks, in the type d.
func (l *Linear) total(outs []*mlx.Array, d mlx.DType) *mlx.Array {
	y := finish([]*Linear{l}, outs, mlx.Float32)[0]
	if l.partial {
		return y
	}
	return l.ranks.AllSum(y, d)
}

// pads reports whether rows are surrounded with zeros.
func (s *summed) pads() bool { return s != nil && (s.before != nil || s.after != nil) }

// surrounded adds zeros at both ends of the rows of x [T, in], or [T, heads, dim] if it is joined.
func (s *summed) surrounded(x *mlx.Array, joined bool) *mlx.Array {
	if !s.pads() {
		return x
	}
	rows := x.Dim(0)
	all := []*mlx.Array{mlx.Reshape(x, rows, -1)}
	zeros := func(n *mlx.Array) *mlx.Array { return mlx.AsType(mlx.BroadcastTo(n, rows, n.Dim(0)), x.DType()) }
	if s.before != nil {
		all = slices.Insert(all, 0, zeros(s.before))
	}
	if s.after != nil {
		all = append(all, zeros(s.after))
	}
	x = mlx.Concatenate(-1, all...)
	if joined {
		x = mlx.ExpandDims(x, 1)
	}
	return x
}

// ranked returns the ranks that a norm over the named tensor's axis is divided over, and the length of the whole axis;
// nil if it is not divided.
func (w *Weights) ranked(name string) *divided {
	if !w.divides(name) {
		return nil
	}
	return &divided{w.ranks, w.tensors[name].Part}
}

// divided is an axis that ranks have parts of.
type divided struct {
	ranks *mlx.Group
	part  *shard.Part
}

// meanSquares returns the mean of the squares [..., 1] of all ranks' rows x.
func (d *divided) meanSquares(x *mlx.Array) *mlx.Array {
	own := mlx.Sum(mlx.Square(mlx.AsType(x, mlx.Float32)), true, -1)
	return mlx.MultiplyScalar(d.ranks.AllSum(own, mlx.Float32), 1/float64(d.part.Of*int64(d.part.Copies)))
}

// OfAll returns what this rank has of f of the outputs y [T, out] of all ranks, for functions of whole rows. The
// outputs of l are divided by elements, if they are.
func (l *Linear) OfAll(y *mlx.Array, f func(*mlx.Array) *mlx.Array) *mlx.Array {
	part := l.weight.Part
	if part == nil {
		return f(y)
	}
	ranks := l.from.ranks
	var widths []int
	for rank := range ranks.Size() {
		r, _ := shard.Elements(part.Of, rank, ranks.Size())
		widths = append(widths, int(r.Len()))
	}
	own := part.Ranges[0]
	return mlx.SliceAxis(f(ranks.AllGather(y, widths...)), -1, mlx.Range(int(own.Begin), int(own.End)))
}

// lookUpOwn is Lookup for ranks that have the vectors of some tokens each. All but one add zeros: the sums are exact.
func (e *Embedding) lookUpOwn(tokens *mlx.Array) *mlx.Array {
	var rows *mlx.Array
	first := int(e.weight.Part.Ranges[0].Begin)
	if p := e.weight.Packed; p != nil {
		rows = mlx.OwnPackedTableRows(e.weight.Array, p.Scales, p.Biases, tokens, first, e.scale, p.Group, p.Bits, p.Mode,
			e.dtype)
	} else {
		rows = mlx.OwnTableRows(e.weight.Array, tokens, first, e.scale)
	}
	return e.ranks.AllSum(mlx.AsType(rows, mlx.Float32), rows.DType())
}

// vocabulary is the part of a vocabulary whose logits a rank computes.
type vocabulary struct {
	ranks  *mlx.Group
	widths []int
}

// newVocabulary divides a vocabulary over the ranks, as [shard.Parts] does. It returns nil if there is one rank.
func (w *Weights) newVocabulary(size int) (v *vocabulary, own shard.Range) {
	if w.ranks == nil || w.ranks.Size() == 1 {
		return nil, own
	}
	v = &vocabulary{ranks: w.ranks}
	for rank := range w.ranks.Size() {
		r, ok := shard.Elements(int64(size), rank, w.ranks.Size())
		if !ok {
			return nil, own
		}
		if v.widths = append(v.widths, int(r.Len())); rank == w.ranks.Rank() {
			own = r
		}
	}
	return v, own
}

// all returns the logits [T, vocab] of all ranks.
func (v *vocabulary) all(logits *mlx.Array) *mlx.Array {
	if v == nil {
		return logits
	}
	return v.ranks.AllGather(logits, v.widths...)
}

// ownExperts are the experts that this rank has, if ranks have different ones.
type ownExperts struct {
	ranks        *mlx.Group
	first, count int
}

// newOwnExperts returns nil if this rank has all experts of a bank.
func newOwnExperts(w *Weights, b *bank) *ownExperts {
	if b.weight == nil || b.weight.Part == nil {
		return nil
	}
	own := b.weight.Part.Ranges[0]
	return &ownExperts{w.ranks, int(own.Begin), int(own.Len())}
}

// apply calls f, which applies experts as [Experts.Apply] does, for the experts of this rank, and adds up the outputs
// of all ranks.
func (o *ownExperts) apply(x, weights, chosen *mlx.Array, s Shared,
	f func(x, weights, chosen *mlx.Array, s Shared) *mlx.Array,
) *mlx.Array {
	if o == nil {
		return f(x, weights, chosen, s)
	}
	own := mlx.OwnExperts(weights, chosen, o.first, o.count)
	for _, a := range []**mlx.Array{&s.X, &s.Gate} {
		if *a != nil {
			*a = mlx.AsType(*a, mlx.Float32)
		}
	}
	return o.total(f(mlx.AsType(x, mlx.Float32), own[0], own[1], s), x.DType())
}

// total adds up the shares x, float32, of all ranks, in the type d.
func (o *ownExperts) total(x *mlx.Array, d mlx.DType) *mlx.Array {
	if o == nil {
		return x
	}
	return o.ranks.AllSum(mlx.AsType(x, mlx.Float32), d)
}

// agreed returns the scores of the first rank, so that all ranks choose the same experts whatever their processors
// are.
func (o *ownExperts) agreed(scores *mlx.Array) *mlx.Array {
	if o == nil {
		return scores
	}
	return mlx.AsType(o.ranks.Broadcast(mlx.AsType(scores, mlx.Float32), 0), scores.DType())
}

// once reports whether this rank adds what all ranks have computed alike.
func (o *ownExperts) once() bool { return o == nil || o.ranks.Rank() == 0 }
