package cache

import "github.com/ingotml/ingot/mlx"

// step is the number of positions by which storage grows.
const step = 256

// stored is keys and values that are written in place: a step makes a new version of the arrays over the same memory and
// drops the old one. Data flow puts a step behind the one before it, and the arrays given to Read put it behind those
// that only read.
type stored struct {
	pair
	bits    int // packed rows; 0 is as they come
	offset  int
	readers []*mlx.Array // of this version
	trial
}

// pair is keys and values [1, heads, positions, dim], or packed rows of bytes; v is nil where the values are a part of the keys, both where there is
// nothing.
type pair struct{ k, v *mlx.Array }

// each makes a pair of one function's results.
func (p pair) each(fn func(x *mlx.Array) *mlx.Array) pair {
	if p.v == nil {
		return pair{k: fn(p.k)}
	}
	return pair{fn(p.k), fn(p.v)}
}

func (p pair) arrays() []*mlx.Array {
	switch {
	case p.k == nil:
		return nil
	case p.v == nil:
		return []*mlx.Array{p.k}
	}
	return []*mlx.Array{p.k, p.v}
}

// scope ends what fn makes of a pair, but for what it keeps: positions that were cut out would hold all of the memory that
// they are cut from.
func (p pair) scope(fn func()) { p.k.Thread().Scope(fn) }

// slots is the slots [begin, end) of a pair; it shares their memory.
func (p pair) slots(begin, end int) pair {
	return p.each(func(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 2, mlx.Range(begin, end)) })
}

// zeros is n empty positions like those of p.
func (p pair) zeros(n int) pair {
	return p.each(func(x *mlx.Array) *mlx.Array {
		return mlx.Zeros(x.Thread(), x.DType(), 1, x.Dim(1), n, x.Dim(3))
	})
}

// room is n empty positions for rows k, v [T, heads, dim].
func (c *stored) room(k, v *mlx.Array, n int) pair {
	return pair{k, v}.each(func(x *mlx.Array) *mlx.Array {
		if c.bits > 0 {
			return mlx.Zeros(x.Thread(), mlx.Uint8, 1, x.Dim(1), n, mlx.PackedBytes(x.Dim(2), c.bits))
		}
		return mlx.Zeros(x.Thread(), x.DType(), 1, x.Dim(1), n, x.Dim(2))
	})
}

// join puts positions one after the other, in memory of their own.
func join(parts ...pair) pair {
	axis := func(of func(pair) *mlx.Array) *mlx.Array {
		var list []*mlx.Array
		for _, p := range parts {
			if x := of(p); x != nil && x.Dim(2) > 0 {
				list = append(list, x)
			}
		}
		switch len(list) {
		case 0:
			return nil
		case 1:
			return mlx.Copy(list[0]) // joining one array would be that array
		}
		return mlx.Concatenate(2, list...)
	}
	return pair{axis(func(p pair) *mlx.Array { return p.k }), axis(func(p pair) *mlx.Array { return p.v })}
}

// replace puts a new version, or new storage, in the old one's place.
func (c *stored) replace(p pair) {
	c.k = replace(c.k, p.k)
	if p.v != nil {
		c.v = replace(c.v, p.v)
	}
}

// replace keeps the new version of an array and ends the old one's life here.
func replace(old, new *mlx.Array) *mlx.Array {
	mlx.Keep(new)
	if old != new {
		mlx.Free(old)
	}
	return new
}

// Offset implements Layer.
func (c *stored) Offset() int { return c.offset }

// Wrote implements Attention.
func (c *stored) Wrote(s mlx.Store, rows int) {
	c.replace(pair{s.K, s.V})
	mlx.Free(c.readers...)
	c.readers = nil
	c.offset += rows
}

// Read implements Attention.
func (c *stored) Read(done *mlx.Array) { c.readers = append(c.readers, mlx.Keep(done)) }

func (c *stored) view(ring bool) Storage {
	return Storage{Store: mlx.Store{K: c.k, V: c.v, Bits: c.bits}, Ring: ring, After: c.readers}
}

func (c *stored) free() {
	mlx.Free(c.k, c.v)
	mlx.Free(c.readers...)
	*c = stored{bits: c.bits}
}

// ceil is the smallest multiple of step that is not below n.
func ceil(n int) int { return (n + step - 1) / step * step }
