package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// AttendOptions configures attention. Scale is required.
type AttendOptions struct {
	Scale   float64    // of the scores; usually 1/sqrt(head size)
	SoftCap float64    // scores become SoftCap*tanh(score/SoftCap); 0 disables it
	Window  int        // positions that a row sees, including its own; 0 means all up to its own
	Chunked bool       // a row sees the positions up to its own from the last multiple of Window on
	Sinks   *mlx.Array // [heads] scores without a value, or nil
	Values  int        // if v is nil: the values are the first Values channels of the keys
	Rope    *Rope      // used by blocks that rotate; Attend and AttendStored expect rotated queries and keys
}

func (o AttendOptions) over(b *Batch, ring bool, after []*mlx.Array) mlx.AttendOptions {
	return mlx.AttendOptions{
		Scale: o.Scale, SoftCap: o.SoftCap, Window: o.Window, Chunked: o.Chunked, Ring: ring, Sinks: o.Sinks,
		Values: o.Values, After: after, Positions: b.Positions,
	}
}

// Attend appends keys and values [T, kv heads, dim] to the caches of a layer. Queries [A, heads, dim], of the A rows
// that [Batch.Queried] selects, attend to their sequence up to their own position. The result has the shape of the
// queries with the channels of the values. kv heads must divide heads.
func Attend(b *Batch, layer int, q, k, v *mlx.Array, o AttendOptions) *mlx.Array {
	storages := make([]cache.Storage, len(b.Segments))
	for i, s := range b.Segments {
		storages[i] = s.attention(layer).Reserve(k, v, s.Len)
	}
	ring := b.rings(layer, storages)
	segments := make([]mlx.AttendSegment, len(b.Segments))
	var after []*mlx.Array
	queries := b.QueryRows()
	for i, s := range b.Segments {
		rows := queries.Segments[i].Len
		segments[i] = mlx.AttendSegment{
			Store: storages[i].Store, Shared: storages[i].Shared, Rows: rows,
			Position: s.attention(layer).Offset() + s.Len - rows, Stored: s.Len,
		}
		after = append(after, storages[i].After...)
	}
	out, stores := mlx.Attend(q, k, v, segments, o.over(queries, ring, after))
	for i, s := range b.Segments {
		s.attention(layer).Wrote(stores[i], s.Len)
	}
	return out
}

// AttendStored lets each row attend to the stored keys and values of a layer of its sequence, up to the row's own
// position. It stores nothing. It serves layers that share the keys and values of an earlier layer, and drafts that
// read their target's.
func AttendStored(b *Batch, layer int, q *mlx.Array, o AttendOptions) *mlx.Array {
	storages := make([]cache.Storage, len(b.Segments))
	for i, s := range b.Segments {
		storages[i] = s.attention(layer).View()
		if storages[i].K == nil {
			panic(&mlx.Error{Message: fmt.Sprintf("attention: layer %d has stored nothing yet", layer)})
		}
	}
	ring := b.rings(layer, storages)
	segments := make([]mlx.AttendSegment, len(b.Segments))
	for i, s := range b.Segments {
		segments[i] = mlx.AttendSegment{
			Store: storages[i].Store, Shared: storages[i].Shared, Rows: s.Len, Position: s.Pos,
			Seen: s.attention(layer).Offset(),
		}
	}
	out, read := mlx.AttendStored(q, segments, o.over(b, ring, nil))
	for i, s := range b.Segments {
		done := read
		if i > 0 {
			done = mlx.StopGradient(read) // each cache frees its own array
		}
		s.attention(layer).Read(done)
	}
	return out
}

// rings reports whether the storages of a layer are rings. One operation accepts either rings or plain storages, so if
// the batch has both, the plain ones, whose windows are not full yet, become rings.
func (b *Batch) rings(layer int, storages []cache.Storage) bool {
	n := 0
	for _, s := range storages {
		if s.Ring {
			n++
		}
	}
	if n > 0 && n < len(storages) {
		for i, s := range b.Segments {
			storages[i] = s.attention(layer).(*cache.Ring).Wrap()
		}
	}
	return n > 0
}

// attention returns the layer's cache, which must be an attention cache.
func (s Segment) attention(layer int) cache.Attention {
	c, ok := s.Seq.Layers[layer].(cache.Attention)
	if !ok {
		panic(&mlx.Error{Message: fmt.Sprintf("attention: layer %d has no KV cache but %T", layer, s.Seq.Layers[layer])})
	}
	return c
}
