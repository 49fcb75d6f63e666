package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// AttendOptions shape attention.
type AttendOptions struct {
	Scale float64 // of the products; usually 1/sqrt(head size)
}

// Attend appends keys and values to the caches of a layer and lets each row attend to its sequence up to itself.
// Queries are [T, heads, dim], keys and values [T, kv heads, dim] with kv heads dividing heads; so is the result
// [T, heads, dim].
func Attend(b *Batch, layer int, q, k, v *mlx.Array, o AttendOptions) *mlx.Array {
	out := make([]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		c, ok := s.Seq.Layers[layer].(cache.Attention)
		if !ok {
			panic(&mlx.Error{Message: fmt.Sprintf("attention: layer %d keeps no keys and values (%T)", layer, s.Seq.Layers[layer])})
		}
		h := c.Update(s.heads(k), s.heads(v))
		// A single row sees all there is: no mask.
		y := mlx.Attention(s.heads(q), h.K, h.V, nil, nil, o.Scale, s.Len > 1)
		out[i] = mlx.Squeeze(mlx.Transpose(y, 0, 2, 1, 3), 0)
	}
	if len(out) == 1 {
		return out[0]
	}
	return mlx.Concatenate(0, out...)
}

// heads gives the segment's rows of [T, heads, dim] as [1, heads, rows, dim].
func (s Segment) heads(x *mlx.Array) *mlx.Array {
	if s.Len != x.Dim(0) {
		x = mlx.SliceAxis(x, 0, mlx.Range(s.Row, s.Row+s.Len))
	}
	return mlx.ExpandDims(mlx.Transpose(x, 1, 0, 2), 0)
}

// SplitHeads gives [T, heads*dim] as [T, heads, dim].
func SplitHeads(x *mlx.Array, heads int) *mlx.Array {
	return mlx.Reshape(x, x.Dim(0), heads, x.Dim(1)/heads)
}

// JoinHeads gives [T, heads, dim] as [T, heads*dim].
func JoinHeads(x *mlx.Array) *mlx.Array { return mlx.Reshape(x, x.Dim(0), -1) }
