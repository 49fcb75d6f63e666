package nn

import (
	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// byLength is a rope whose frequencies depend on the length of the text (longrope, dynamic): when a text grows, all of its
// positions turn at other frequencies, as in a forward of the whole text without a cache. (With one, transformers 5.23
// leaves the keys of earlier steps as they were rotated then, so that what it says depends on how a text was cut.)
//
// So the keys of such a model are stored as they are before the rotation, and all of a sequence are rotated at each step.
// That costs about as much as attention itself, and no cache needs to know of it.
type byLength struct {
	rope  arch.Rope
	dim   int // of heads
	first int // channels of a key before those of rope
}

// attend is Attend with queries and keys that are not rotated yet.
func (r *Rope) attend(b *Batch, layer int, q, k, v *mlx.Array, o AttendOptions) *mlx.Array {
	outs := make([]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		c := s.attention(layer)
		rows := mlx.Range(s.Row, s.Row+s.Len)
		own := func(x *mlx.Array) *mlx.Array {
			if x == nil || len(b.Segments) == 1 {
				return x
			}
			return mlx.SliceAxis(x, 0, rows)
		}
		storage := write(c, own(k), own(v), s.Len)
		outs[i] = r.attendTo(storage, own(q), s.Pos, c.Offset(), o)
	}
	if len(outs) == 1 {
		return outs[0]
	}
	return mlx.Concatenate(0, outs...)
}

// attendStored is AttendStored, alike.
func (r *Rope) attendStored(b *Batch, layer int, q *mlx.Array, o AttendOptions) *mlx.Array {
	outs := make([]*mlx.Array, len(b.Segments))
	for i, s := range b.Segments {
		c := s.attention(layer)
		outs[i] = r.attendTo(c.View(), mlx.SliceAxis(q, 0, mlx.Range(s.Row, s.Row+s.Len)), s.Pos, c.Offset(), o)
	}
	return mlx.Concatenate(0, outs...)
}

// write stores rows without attending to them.
func write(c cache.Attention, k, v *mlx.Array, rows int) cache.Storage {
	storage := c.Reserve(k, v, rows)
	if storage.Ring {
		panic(&mlx.Error{Message: "attention: a rope by the length of the text needs the keys of all positions"})
	}
	at := mlx.Range(c.Offset(), c.Offset()+rows)
	put := func(store, x *mlx.Array) *mlx.Array {
		if x == nil {
			return nil
		}
		return mlx.SliceUpdate(store, mlx.ExpandDims(mlx.Transpose(x, 1, 0, 2), 0), mlx.All(), mlx.All(), at, mlx.All())
	}
	storage.K, storage.V = put(storage.K, k), put(storage.V, v)
	c.Wrote(storage.Store, rows)
	return storage
}

// attendTo lets queries [n, heads, dim] from a position on attend to a store of seen positions.
func (r *Rope) attendTo(storage cache.Storage, q *mlx.Array, position, seen int, o AttendOptions) *mlx.Array {
	t := q.Thread()
	freqs, _ := r.byLength.rope.FrequenciesAt(r.byLength.dim, seen)
	angles := radians(t, freqs)
	positions := mlx.Arange(t, 0, float64(seen), 1, mlx.Int32)
	keys := mlx.Transpose(mlx.Squeeze(mlx.SliceAxis(storage.K, 2, mlx.Range(0, seen)), 0), 1, 0, 2) // [seen, heads, dim]
	rotated := mlx.ExpandDims(mlx.Transpose(r.turn(keys, positions, angles), 1, 0, 2), 0)
	q = r.turn(q, mlx.SliceAxis(positions, 0, mlx.Range(position, position+q.Dim(0))), angles)
	segment := mlx.AttendSegment{Store: mlx.Store{K: rotated, V: storage.V}, Rows: q.Dim(0), Position: position, Seen: seen}
	if storage.V != nil {
		segment.Store.V = mlx.SliceAxis(storage.V, 2, mlx.Range(0, seen))
	}
	out, _ := mlx.AttendStored(q, []mlx.AttendSegment{segment}, o.over(false, nil))
	return out
}

// turn rotates x [n, heads, dim].
func (r *Rope) turn(x, positions, angles *mlx.Array) *mlx.Array {
	rotate := func(x *mlx.Array) *mlx.Array {
		return mlx.RotateRows([]*mlx.Array{x}, positions, angles, r.neighbours, false, r.scale)[0]
	}
	if r.byLength.first == 0 {
		return rotate(x)
	}
	parts := mlx.Split(x, 2, r.byLength.first)
	return mlx.Concatenate(2, parts[0], rotate(parts[1]))
}
