package nn

import (
	"fmt"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// ChooseKeys returns the stored keys of a layer, int32 [A, budget], that the rows of an indexer attend to; see
// [mlx.ChooseKeys]. queries are [A, heads, dim], and weights [A, heads]. The indexer's keys are what the layer keeps
// beside its own. The layer has a key for each rate positions.
func ChooseKeys(b *Batch, layer int, queries, weights *mlx.Array, budget, rate int) *mlx.Array {
	segments := b.stored(layer)
	for i := range segments {
		segments[i].Store.K = segments[i].Store.V
	}
	o := mlx.ChosenOptions{Rate: rate, Positions: b.Positions}
	chosen, read := mlx.ChooseKeys(queries, weights, segments, budget, o)
	b.read(layer, read)
	return chosen
}

// AttendChosen lets rows q [A, heads, dim] attend to keys of a layer that ChooseKeys returned. The values are the first
// o.Values channels of the keys.
func AttendChosen(b *Batch, layer int, q, chosen *mlx.Array, o AttendOptions) *mlx.Array {
	out, read := mlx.AttendChosen(q, chosen, b.stored(layer), nil, o.chosen(b, 1))
	b.read(layer, read)
	return out
}

// AttendEntries is AttendChosen for the entries of a layer, one for each rate positions, or for all that a row sees if
// chosen is nil. The rows also attend to o.Window positions of another layer.
func AttendEntries(b *Batch, near, entries, rate int, q, chosen *mlx.Array, o AttendOptions) *mlx.Array {
	windows := make([]mlx.Store, len(b.Segments))
	for i, s := range b.stored(near) {
		windows[i] = s.Store
	}
	out, read := mlx.AttendChosen(q, chosen, b.stored(entries), windows, o.chosen(b, rate))
	b.read(near, read)
	b.read(entries, mlx.StopGradient(read)) // each cache frees its own array
	return out
}

func (o AttendOptions) chosen(b *Batch, rate int) mlx.ChosenOptions {
	return mlx.ChosenOptions{
		Scale: o.Scale, Values: o.Values, Window: o.Window, Rate: rate, Sinks: o.Sinks, Positions: b.Positions,
	}
}

// stored returns what a layer has stored for the batch's segments. Each must see all of its rows.
func (b *Batch) stored(layer int) []mlx.AttendSegment {
	segments := make([]mlx.AttendSegment, len(b.Segments))
	for i, s := range b.Segments {
		c := s.attention(layer)
		if len(c.View().Shared) > 0 {
			b.LimitTo(1) // Whole copies what is shared into storage that the graph does not begin with
		}
		segments[i] = mlx.AttendSegment{Store: c.Whole().Store, Rows: s.Len, Position: s.Pos}
	}
	return segments
}

// read notes that the stores of a layer have been read once done is computed.
func (b *Batch) read(layer int, done *mlx.Array) {
	for i, s := range b.Segments {
		own := done
		if i > 0 {
			own = mlx.StopGradient(done) // each cache frees its own array
		}
		s.attention(layer).Read(own)
	}
}

// entriesOf returns the cache of a layer's entries.
func (s Segment) entriesOf(layer int) *cache.Compressed {
	c, ok := s.Seq.Layers[layer].(*cache.Compressed)
	if !ok {
		panic(&mlx.Error{Message: fmt.Sprintf("compression: layer %d has no entries but %T", layer, s.Seq.Layers[layer])})
	}
	return c
}

// CanCompress reports whether Compress serves a layer of entries: on a CPU, if these are not packed.
func CanCompress(b *Batch, entries int) bool {
	for _, s := range b.Segments {
		if s.entriesOf(entries).View().Bits > 0 {
			return false
		}
	}
	return !b.Tokens.Thread().Info().GPU
}

// Compress stores projections rows [T, width] in the cache ring, and the entries that they complete in the cache
// entries; see [mlx.CompressRows]. There are one or two compressors, for keys and for what is kept beside them.
func Compress(b *Batch, ring, entries int, rows *mlx.Array, compressors []mlx.Compressor, o mlx.CompressOptions) {
	var like [2]*mlx.Array // an entry's shape
	for i, c := range compressors {
		like[i] = mlx.Zeros(rows.Thread(), rows.DType(), 1, 1, c.Weight.Dim(0))
	}
	wide := mlx.ExpandDims(rows, 1)
	segments := make([]mlx.CompressSegment, len(b.Segments))
	o.Positions = b.Positions
	for i, s := range b.Segments {
		r, e := s.attention(ring).Reserve(wide, nil, s.Len), s.entriesOf(entries).Reserve(like[0], like[1], s.Len)
		o.After = append(append(o.After, r.After...), e.After...)
		segments[i] = mlx.CompressSegment{Ring: r.K, Entries: []*mlx.Array{e.K}, Rows: s.Len, Position: s.Pos}
		if e.V != nil {
			segments[i].Entries = append(segments[i].Entries, e.V)
		}
	}
	for i, made := range mlx.CompressRows(rows, segments, compressors, o) {
		s, store := b.Segments[i], mlx.Store{K: made.Entries[0]}
		if len(made.Entries) > 1 {
			store.V = made.Entries[1]
		}
		s.attention(ring).Wrote(mlx.Store{K: made.Ring}, s.Len)
		s.entriesOf(entries).Wrote(store, s.Len)
	}
}

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
		segments[i] = mlx.AttendSegment{
			Store: storages[i].Store, Shared: storages[i].Shared, Rows: s.Len, Position: s.Pos, Stored: s.Len,
		}
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
	k, v, done = readHeads(s, layer, begin, end)
	rows := func(x *mlx.Array) *mlx.Array {
		if x == nil {
			return nil
		}
		return mlx.Squeeze(x, 0)
	}
	return rows(k), rows(v), done
}

// ReadHeads is ReadKV for a layer with any number of KV heads: keys [heads, n, dim] and values [heads, n, size].
func ReadHeads(s Segment, layer int) (k, v *mlx.Array, done func(*mlx.Array)) {
	return readHeads(s, layer, 0, s.attention(layer).Offset())
}

func readHeads(s Segment, layer, begin, end int) (k, v *mlx.Array, done func(*mlx.Array)) {
	c := s.attention(layer)
	storage := c.Whole()
	heads := func(x *mlx.Array) *mlx.Array {
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
		return mlx.Squeeze(x, 0)
	}
	return heads(storage.K), heads(storage.V), func(x *mlx.Array) { c.Read(mlx.StopGradient(x)) }
}

// WriteEntries appends entries, keys [n, 1, dim] and values [n, 1, size], to the [cache.Compressed] of a segment's
// sequence: those that its rows complete. values may be nil. If there are none only the shapes after the first axis and
// the types matter.
func WriteEntries(s Segment, layer int, k, v *mlx.Array) {
	c := s.entriesOf(layer)
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
