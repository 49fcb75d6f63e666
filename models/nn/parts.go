package nn

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models/shard"
)

// NewLinearParts is NewLinear for layers that are stored as one tensor: NAME.weight [sum of outs, in], each layer's
// rows in order, or those that this rank has of each layer. The layers share the tensor's memory.
func NewLinearParts(w *Weights, name string, outs []int, in int, bias bool) []*Linear {
	total := 0
	for _, n := range outs {
		total += n
	}
	whole := NewLinear(w, name, total, in, bias)
	parts := make([]*Linear, len(outs))
	at := 0
	for i, n := range outs {
		parts[i] = &Linear{name: whole.name, from: w}
		from, to := at, at+n
		if whole.weight != nil && whole.weight.Part != nil {
			own := whole.weight.Part.Within(shard.Range{Begin: int64(at), End: int64(at + n)})
			from, to = int(own.Begin), int(own.End)
		}
		if whole.weight != nil {
			parts[i].weight = w.Rows(whole.weight, from, to)
			parts[i].weight.Part = partOf(whole.weight.Part, n, to-from)
		}
		if whole.bias != nil {
			parts[i].bias = w.Constant(mlx.SliceAxis(whole.bias, 0, mlx.Range(from, to)))
		}
		at += n
	}
	return parts
}

// partOf returns the part of a tensor of which this rank has own rows; nil if the whole is not divided.
func partOf(whole *shard.Part, rows, own int) *shard.Part {
	if whole == nil {
		return nil
	}
	return &shard.Part{Of: int64(rows), Ranges: []shard.Range{{End: int64(own)}}, Copies: whole.Copies}
}

// Rows returns the rows [from, to) of a matrix, or of each matrix of a stack, in the stored format. The rows of a
// single matrix share its memory.
func (w *Weights) Rows(t *Tensor, from, to int) *Tensor {
	return w.each(t, func(a *mlx.Array) *mlx.Array {
		rows := mlx.SliceAxis(a, -2, mlx.Range(from, to))
		if a.Rank() == 2 {
			return rows // they are contiguous already; Contiguous might copy them
		}
		return mlx.Contiguous(rows)
	})
}

// Heads returns a matrix [heads*n, in] as one matrix per head: [heads, n, in]. heads are those of all ranks.
func (w *Weights) Heads(t *Tensor, heads int) *Tensor {
	w.noFactor("of heads", t)
	heads = t.own(heads)
	return w.each(t, func(a *mlx.Array) *mlx.Array { return mlx.Reshape(a, heads, -1, a.Dim(1)) })
}

// Transposed returns matrices [..., out, in] as plain matrices [..., in, out] of the activations' type.
func (w *Weights) Transposed(t *Tensor) *Tensor {
	return &Tensor{Array: w.constant(t.Array, func(plain *mlx.Array) *mlx.Array {
		if p := t.Packed; p != nil {
			plain = mlx.Dequantize(plain, p.Scales, p.Biases, p.Group, p.Bits, p.Mode, nil, w.DType)
			if t.factor() != 1 {
				plain = mlx.AsType(mlx.MultiplyScalar(mlx.AsType(plain, mlx.Float32), t.factor()), w.DType)
			}
		}
		return mlx.Contiguous(mlx.SwapAxes(plain, -1, -2))
	})}
}

// Across returns matrices [..., out, in] as matrices [..., in, out] of a [HeadLinear]. A CPU multiplies by affine codes
// of 4 and 8 bits as they lie, so these remain as they are; others are transposed.
func (w *Weights) Across(t *Tensor) *Tensor {
	p := t.Packed
	if p == nil || p.Mode != mlx.Affine || p.Bits != 4 && p.Bits != 8 || t.Array.Thread().Info().GPU {
		return w.Transposed(t)
	}
	across := *p
	across.Across = true
	return &Tensor{Array: t.Array, Packed: &across}
}

// Release frees tensors that others were made from, after computing those. Arrays that they share remain.
func (w *Weights) Release(made []*Tensor, sources ...*Tensor) {
	var kept, arrays []*mlx.Array
	for _, t := range made {
		kept = append(kept, t.present()...)
	}
	mlx.Eval(kept...)
	for _, t := range sources {
		arrays = append(arrays, t.present()...)
	}
	arrays = slices.DeleteFunc(arrays, func(a *mlx.Array) bool { return slices.Contains(kept, a) })
	mlx.Free(arrays...)
	w.owned = slices.DeleteFunc(w.owned, func(a *mlx.Array) bool { return slices.Contains(arrays, a) })
}

func (w *Weights) each(t *Tensor, f func(*mlx.Array) *mlx.Array) *Tensor {
	out := &Tensor{Array: w.constant(t.Array, f)}
	if t.Packed == nil {
		return out
	}
	p := *t.Packed
	p.Scales = w.constant(p.Scales, f)
	if p.Biases != nil {
		p.Biases = w.constant(p.Biases, f)
	}
	out.Packed = &p
	return out
}

// constant keeps the result of f and frees its intermediate arrays, which would hold on to a's memory.
func (w *Weights) constant(a *mlx.Array, f func(*mlx.Array) *mlx.Array) (made *mlx.Array) {
	a.Thread().Scope(func() { made = w.Constant(f(a)) })
	return made
}

func (t *Tensor) present() []*mlx.Array {
	return slices.DeleteFunc(t.arrays(), func(a *mlx.Array) bool { return a == nil })
}
