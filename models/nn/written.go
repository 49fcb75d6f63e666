package nn

import "github.com/ingotml/ingot/mlx"

// WriteKV appends keys [T, 1, dim] and values [T, 1, size] of all rows to the caches of a layer, without attention.
// values may be nil. What the layer calls values may be anything that it keeps beside the keys.
func WriteKV(b *Batch, layer int, k, v *mlx.Array) {
	segments := make([]mlx.AttendSegment, len(b.Segments))
	// The queries are not used: each sees one position.
	o := mlx.AttendOptions{Scale: 1, Window: 1, Positions: b.Positions}
	if v == nil {
		o.Values = k.Dim(2)
	}
	for i, s := range b.Segments {
		storage := s.attention(layer).Reserve(k, v, s.Len)
		segments[i] = mlx.AttendSegment{Store: storage.Store, Rows: s.Len, Position: s.Pos, Stored: s.Len}
		o.After = append(o.After, storage.After...)
	}
	_, stores := mlx.Attend(k, k, v, segments, o)
	for i, s := range b.Segments {
		s.attention(layer).Wrote(stores[i], s.Len)
	}
}

// ReadKV returns the keys [n, dim] and values [n, size] that a layer with one KV head has stored for a segment's
// sequence. Packed ones become float32. The caller calls done with an array that is computed after them.
func ReadKV(s Segment, layer int) (k, v *mlx.Array, done func(*mlx.Array)) {
	c := s.attention(layer)
	storage := c.View()
	rows := func(x *mlx.Array) *mlx.Array {
		if x == nil {
			return nil
		}
		if x = mlx.SliceAxis(x, 2, mlx.Range(0, c.Offset())); storage.Bits > 0 {
			x = mlx.UnpackRows(x, storage.Bits, mlx.Float32)
		}
		return mlx.Reshape(x, c.Offset(), -1)
	}
	return rows(storage.K), rows(storage.V), func(x *mlx.Array) { c.Read(mlx.StopGradient(x)) }
}

// QueryRows returns the batch of the rows that [Batch.Asked] selects.
func (b *Batch) QueryRows() *Batch { return b.queryRows() }

// LimitTo notes that the graph holds only for sequences of up to n tokens.
func (b *Batch) LimitTo(n int) { b.limitTo(n) }
