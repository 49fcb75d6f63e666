package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// AttendOptions shape attention. Scale is needed.
type AttendOptions struct {
	Scale   float64    // of the products; usually 1/sqrt(head size)
	SoftCap float64    // scores are SoftCap*tanh(score/SoftCap); 0 is none
	Window  int        // positions that a row sees, its own included; 0 is all up to its own
	Sinks   *mlx.Array // [heads] scores without a value, or nil
	Values  int        // with v nil: the values are the first so many channels of the keys
	Rope    *Rope      // of the layer, for blocks that rotate; Attend and AttendStored take what is rotated already
}

// Kind is the cache that attention with these options needs.
func (o AttendOptions) Kind() cache.Kind { return cache.Rotating(o.Window) }

func (o AttendOptions) over(b *Batch, ring bool, after []*mlx.Array) mlx.AttendOptions {
	return mlx.AttendOptions{Scale: o.Scale, SoftCap: o.SoftCap, Window: o.Window, Ring: ring, Sinks: o.Sinks, Values: o.Values, After: after, Positions: b.Positions}
}

// Attend appends keys and values to the caches of a layer and lets each row that the batch asks for attend to its sequence up
// to itself. Keys and values are [T, kv heads, dim], with kv heads dividing heads, queries of the rows that [Batch.Asked] picks
// [A, heads, dim]; so is the result, with the channels of the values.
func Attend(b *Batch, layer int, q, k, v *mlx.Array, o AttendOptions) *mlx.Array {
	storages := make([]cache.Storage, len(b.Segments))
	for i, s := range b.Segments {
		storages[i] = s.attention(layer).Reserve(k, v, s.Len)
	}
	ring := b.rings(layer, storages)
	segments := make([]mlx.AttendSegment, len(b.Segments))
	var after []*mlx.Array
	asking := b.asks()
	for i, s := range b.Segments {
		rows := asking.Segments[i].Len
		segments[i] = mlx.AttendSegment{Store: storages[i].Store, Rows: rows, Position: s.attention(layer).Offset() + s.Len - rows, Stored: s.Len}
		after = append(after, storages[i].After...)
	}
	out, stores := mlx.Attend(q, k, v, segments, o.over(asking, ring, after))
	for i, s := range b.Segments {
		s.attention(layer).Wrote(stores[i], s.Len)
	}
	return out
}

// AttendStored lets each row attend to what a layer of its sequence has stored, up to the row's own position, and stores
// nothing: for layers that share the keys and values of an earlier one, and drafts that read their target's.
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
		segments[i] = mlx.AttendSegment{Store: storages[i].Store, Rows: s.Len, Position: s.Pos, Seen: s.attention(layer).Offset()}
	}
	out, read := mlx.AttendStored(q, segments, o.over(b, ring, nil))
	for i, s := range b.Segments {
		done := read
		if i > 0 {
			done = mlx.StopGradient(read) // each cache frees its own
		}
		s.attention(layer).Read(done)
	}
	return out
}

// rings tells whether the storages of a layer are rings. One operation takes rings or none, so where there are both, those
// that have not filled their windows are made rings too.
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

// attention is the cache of a layer that keeps keys and values.
func (s Segment) attention(layer int) cache.Attention {
	c, ok := s.Seq.Layers[layer].(cache.Attention)
	if !ok {
		panic(&mlx.Error{Message: fmt.Sprintf("attention: layer %d keeps no keys and values (%T)", layer, s.Seq.Layers[layer])})
	}
	return c
}
