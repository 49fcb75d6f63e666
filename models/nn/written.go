package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// WriteKV appends keys [T, 1, dim] and values [T, 1, size] of all rows to the caches of a layer, without attention.
// values may be nil. What the layer calls values may be anything that it keeps beside the keys.
func WriteKV(b *Batch, layer int, k, v *mlx.Array) {
	segments := make([]mlx.AttendSegment, len(b.Segments))
	// The queries are not used: each sees one position.
	o := mlx.AttendOptions{Scale: 1, Window: 1, Positions: b.Positions}
	if v == nil {
		o.Values = k.Dim(2)
	}
	storages := make([]cache.Storage, len(b.Segments))
	for i, s := range b.Segments {
		storages[i] = s.attention(layer).Reserve(k, v, s.Len)
	}
	o.Ring = b.rings(layer, storages)
	for i, s := range b.Segments {
		segments[i] = mlx.AttendSegment{Store: storages[i].Store, Rows: s.Len, Position: s.Pos, Stored: s.Len}
		o.After = append(o.After, storages[i].After...)
	}
	_, stores := mlx.Attend(k, k, v, segments, o)
	for i, s := range b.Segments {
		s.attention(layer).Wrote(stores[i], s.Len)
	}
}

// ReadKV returns the keys [n, dim] and values [n, size] that a layer with one KV head has stored for a segment's
// sequence. Packed ones become float32. The caller calls done with an array that is computed after them.
func ReadKV(s Segment, layer int) (k, v *mlx.Array, done func(*mlx.Array)) {
	return ReadRows(s, layer, 0, s.attention(layer).Offset())
}

// ReadRows is ReadKV for the positions [begin, end), at least one, which a ring must still have.
func ReadRows(s Segment, layer, begin, end int) (k, v *mlx.Array, done func(*mlx.Array)) {
	c := s.attention(layer)
	storage := c.View()
	rows := func(x *mlx.Array) *mlx.Array {
		if x == nil {
			return nil
		}
		first, n := begin, end-begin
		if storage.Ring {
			first %= x.Dim(2)
		}
		if past := first + n - x.Dim(2); past > 0 { // the positions wrap around
			x = mlx.Concatenate(2, mlx.SliceAxis(x, 2, mlx.Range(first, x.Dim(2))), mlx.SliceAxis(x, 2, mlx.Range(0, past)))
		} else {
			x = mlx.SliceAxis(x, 2, mlx.Range(first, first+n))
		}
		if storage.Bits > 0 {
			x = mlx.UnpackRows(x, storage.Bits, mlx.Float32)
		}
		return mlx.Reshape(x, n, -1)
	}
	return rows(storage.K), rows(storage.V), func(x *mlx.Array) { c.Read(mlx.StopGradient(x)) }
}

// WriteEntries appends entries, keys [n, 1, dim] and values [n, 1, size], to the [cache.Compressed] of a segment's
// sequence: those that its rows complete. values may be nil. If there are none only the shapes after the first axis and
// the types matter.
func WriteEntries(s Segment, layer int, k, v *mlx.Array) {
	c, ok := s.Seq.Layers[layer].(*cache.Compressed)
	if !ok {
		panic(&mlx.Error{Message: fmt.Sprintf("compression: layer %d has no entries but %T", layer, s.Seq.Layers[layer])})
	}
	first := c.Entries(0)
	n, storage := c.Entries(s.Len)-first, c.Reserve(k, v, s.Len)
	if n == 0 {
		c.Wrote(storage.Store, s.Len)
		return
	}
	o := mlx.AttendOptions{Scale: 1, Window: 1, After: storage.After}
	if v == nil {
		o.Values = k.Dim(2)
	}
	_, stores := mlx.Attend(k, k, v, []mlx.AttendSegment{{Store: storage.Store, Rows: n, Position: first, Stored: n}}, o)
	c.Wrote(stores[0], s.Len)
}

// ReadEntries is ReadKV for the first n entries, at least one, that [WriteEntries] has stored.
func ReadEntries(s Segment, layer, n int) (k, v *mlx.Array, done func(*mlx.Array)) {
	return ReadRows(s, layer, 0, n)
}

// QueryRows returns the batch of the rows that [Batch.Asked] selects.
func (b *Batch) QueryRows() *Batch { return b.queryRows() }

// LimitTo notes that the graph holds only for sequences of up to n tokens.
func (b *Batch) LimitTo(n int) { b.limitTo(n) }
