package nn

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// NewLinearParts is NewLinear of layers that are stored as one: NAME.weight [sum of outs, in], each with its share of the rows,
// in order. They stay where they are.
func NewLinearParts(w *Weights, name string, outs []int, in int, bias bool) []*Linear {
	total := 0
	for _, n := range outs {
		total += n
	}
	whole := NewLinear(w, name, total, in, bias)
	parts := make([]*Linear, len(outs))
	at := 0
	for i, n := range outs {
		parts[i] = &Linear{}
		if whole.weight != nil {
			parts[i].weight = w.Rows(whole.weight, at, at+n)
		}
		if whole.bias != nil {
			parts[i].bias = w.Constant(mlx.SliceAxis(whole.bias, 0, mlx.Range(at, at+n)))
		}
		at += n
	}
	return parts
}

// Rows is the rows [from, to) of a matrix, or of each of several, as they are stored. Those of one matrix share its memory.
func (w *Weights) Rows(t *Tensor, from, to int) *Tensor {
	return w.each(t, func(a *mlx.Array) *mlx.Array {
		rows := mlx.SliceAxis(a, -2, mlx.Range(from, to))
		if a.Rank() == 2 {
			return rows // of one matrix they lie together; Contiguous would copy them out of a large buffer
		}
		return mlx.Contiguous(rows)
	})
}

// Heads is a matrix [heads*n, in] as one for each head: [heads, n, in].
func (w *Weights) Heads(t *Tensor, heads int) *Tensor {
	w.noFactor("of heads", t)
	return w.each(t, func(a *mlx.Array) *mlx.Array { return mlx.Reshape(a, heads, -1, a.Dim(1)) })
}

// Transposed is matrices [..., out, in] as plain ones [..., in, out] of the type of activations.
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

// Release ends the life of tensors that others were made of, which are computed first.
func (w *Weights) Release(made []*Tensor, gone ...*Tensor) {
	for _, t := range made {
		mlx.Eval(t.present()...)
	}
	var arrays []*mlx.Array
	for _, t := range gone {
		arrays = append(arrays, t.present()...)
	}
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

// constant keeps what f makes of an array, and nothing on the way, which would hold on to the array's memory.
func (w *Weights) constant(a *mlx.Array, f func(*mlx.Array) *mlx.Array) (made *mlx.Array) {
	a.Thread().Scope(func() { made = w.Constant(f(a)) })
	return made
}

func (t *Tensor) present() []*mlx.Array {
	return slices.DeleteFunc(t.arrays(), func(a *mlx.Array) bool { return a == nil })
}
