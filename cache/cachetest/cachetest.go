// Package cachetest gives tests cache layers whose content can be read back: each position holds one number, and each
// entry of a compressed layer that of its last position.
//
// It runs on the engine's thread. Numbers are integers below 8191, also in 8-bit layers, but not in 4-bit layers.
package cachetest

import (
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Put appends positions with the given values to a layer. window is a ring's window, else 0.
func Put(e *mlx.Thread, l cache.Layer, window int, values ...float32) {
	e.Scope(func() {
		x := mlx.Reshape(mlx.FromSlice(e, values), -1, 1, 1)
		switch c := l.(type) {
		case *cache.Compressed:
			var last []float32
			for i, v := range values {
				if c.Entries(i+1) > c.Entries(i) {
					last = append(last, v)
				}
			}
			n := len(last)
			k := mlx.Contiguous(mlx.BroadcastTo(x, len(values), 2, 4)) // only its shape matters
			st := c.Reserve(k, k, len(values))
			if n == 0 {
				c.Wrote(st.Store, len(values))
				break
			}
			k = mlx.Contiguous(mlx.BroadcastTo(mlx.Reshape(mlx.FromSlice(e, last), n, 1, 1), n, 2, 4))
			segment := mlx.AttendSegment{Store: st.Store, Rows: n, Position: c.Entries(0)}
			_, stores := mlx.Attend(k, k, k, []mlx.AttendSegment{segment}, mlx.AttendOptions{Scale: 1, After: st.After})
			c.Wrote(stores[0], len(values))
		case cache.Attention:
			k, q := mlx.Contiguous(mlx.BroadcastTo(x, len(values), 2, 4)), mlx.Zeros(e, mlx.Float32, len(values), 2, 4)
			st := c.Reserve(k, k, len(values))
			segment := mlx.AttendSegment{Store: st.Store, Shared: st.Shared, Rows: len(values), Position: c.Offset()}
			_, stores := mlx.Attend(q, k, k, []mlx.AttendSegment{segment},
				mlx.AttendOptions{Scale: 1, Window: window, Ring: st.Ring, After: st.After})
			c.Wrote(stores[0], len(values))
		case *cache.State:
			// The convolution holds the last value; the delta state holds a number that depends on all values and their order.
			_, delta := c.Arrays()
			if delta == nil {
				delta = mlx.Zeros(e, mlx.Float32, 2, 2, 3)
			}
			after := func(rows int) (conv, state *mlx.Array) {
				state = delta
				for _, v := range values[:rows] {
					state = mlx.Remainder(mlx.AddScalar(mlx.MultiplyScalar(state, 3), float64(v)), mlx.Full(e, 8191, mlx.Float32))
				}
				return mlx.Contiguous(mlx.Full(e, float64(values[rows-1]), mlx.Float32, 3, 5)), mlx.Contiguous(state)
			}
			conv, state := after(len(values))
			c.Advance(conv, state, len(values))
			if c.Trying() {
				delta = mlx.Copy(delta) // outlives the scope
				c.Redo(after, delta)
			}
		}
		mlx.AsyncEval(l.State()...)
	})
}

// Contents reads a layer back. For attention it returns the numbers of the positions visible to the next row, including
// the first of its window. For recurrent state it returns the last number and the combined one.
func Contents(e *mlx.Thread, l cache.Layer, window int) []float32 {
	var got []float32
	e.Scope(func() {
		switch c := l.(type) {
		case cache.Attention:
			v := c.View()
			if v.K == nil {
				return
			}
			first, end := 0, c.Offset()
			if window > 0 {
				first = max(0, end-window)
			}
			if sparse, ok := c.(*cache.Compressed); ok {
				end = sparse.Entries(0)
			}
			base := 0
			for _, p := range v.Shared {
				got = append(got, slots(p.Store, p.Begin, p.End)...)
				base += p.End - p.Begin
			}
			got = got[min(first, len(got)):]
			own := slots(v.Store, 0, v.K.Dim(2))
			for p := max(first, base); p < end; p++ {
				slot := p - base
				if v.Ring {
					slot = p % len(own)
				}
				got = append(got, own[slot])
			}
		case *cache.State:
			if conv, delta := c.Arrays(); conv != nil {
				got = append(got, conv.Float32s()[14], delta.Float32s()[11])
			}
		}
	})
	return got
}

// slots returns the numbers of a store's slots [begin, end), or -1 where the second head or the values do not hold the
// same.
func slots(s mlx.Store, begin, end int) (got []float32) {
	keys, values := numbers(s.K, s.Bits), numbers(s.V, s.Bits)
	for slot := begin; slot < end; slot++ {
		n := keys[4*slot]
		if i := 4*(s.K.Dim(2)+slot) + 3; keys[i] != n || values[i] != n || values[4*slot] != n {
			n = -1
		}
		got = append(got, n)
	}
	return got
}

// numbers returns the elements of storage. In 8 bits, a position's equal channels are off by less than half of 32/255,
// because numbers below 8192 round to multiples of 32 in bfloat16.
func numbers(x *mlx.Array, bits int) []float32 {
	if bits == 0 {
		return x.Float32s()
	}
	return mlx.Round(mlx.UnpackRows(x, bits, mlx.Float32), 0).Float32s()
}

// Want returns the Contents of a layer of this kind after the history.
func Want(kind cache.Kind, window int, history []float32) []float32 {
	switch {
	case len(history) == 0:
		return nil
	case kind.Whole():
		var last []float32
		for i, v := range history {
			if (i+1)%kind.Rate() == 0 {
				last = append(last, v)
			}
		}
		return last
	case kind == cache.Recurrent:
		delta := 0
		for _, v := range history {
			delta = (3*delta + int(v)) % 8191
		}
		return []float32{history[len(history)-1], float32(delta)}
	}
	return history[max(0, len(history)-window):]
}
