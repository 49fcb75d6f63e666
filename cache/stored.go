package cache

import (
	"cmp"
	"math/bits"

	"github.com/ingotml/ingot/mlx"
)

// step is the least number of positions by which storage grows.
const step = 256

// stored is keys and values that are written in place: a step makes a new version of the arrays over the same memory
// and drops the old one. Data flow orders each step after the previous one; the arrays given to Read order it after
// readers.
type stored struct {
	pair
	bits    int  // packed rows; 0: unquantized
	exact   bool // see Kind
	offset  int
	readers []*mlx.Array // readers of this version
	trial
}

// pair is keys and values [1, heads, positions, dim], or packed rows of bytes. v is nil if the values are part of the
// keys; both are nil if there is nothing.
type pair struct{ k, v *mlx.Array }

// pairOf returns the pair with these arrays: keys, and values unless they are part of the keys.
func pairOf(arrays []*mlx.Array) pair {
	p := pair{k: arrays[0]}
	if len(arrays) > 1 {
		p.v = arrays[1]
	}
	return p
}

// each applies a function to both.
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

// slotBytes returns the size of a slot.
func (p pair) slotBytes() (n int64) {
	for _, x := range p.arrays() {
		n += int64(x.Bytes()) / int64(x.Dim(2))
	}
	return n
}

// handles returns kept handles of the arrays. Their owner frees them.
func (p pair) handles() pair {
	return p.each(func(x *mlx.Array) *mlx.Array { return mlx.Keep(mlx.SliceAxis(x, 2, mlx.Range(0, x.Dim(2)))) })
}

// scope frees what fn makes of a pair, except what it keeps: a slice of positions would keep the memory of the whole
// array alive.
func (p pair) scope(fn func()) { p.k.Thread().Scope(fn) }

// slots returns the slots [begin, end) of a pair.
func (p pair) slots(begin, end int) slots { return slots{p, begin, end} }

// all returns all slots of a pair.
func (p pair) all() slots { return p.slots(0, p.k.Dim(2)) }

// slots are those from begin to before end of a pair. They share its memory.
type slots struct {
	pair
	begin, end int
}

func (s slots) len() int { return s.end - s.begin }

// part returns slots i to before j of these.
func (s slots) part(i, j int) slots { return slots{s.pair, s.begin + i, s.begin + j} }

// zeros returns n empty positions shaped like p's.
func (p pair) zeros(n int) pair {
	return p.each(func(x *mlx.Array) *mlx.Array {
		return mlx.Zeros(x.Thread(), x.DType(), 1, x.Dim(1), n, x.Dim(3))
	})
}

// room returns n empty positions for rows k, v [T, heads, dim].
func (c *stored) room(k, v *mlx.Array, n int) pair {
	return pair{k, v}.each(func(x *mlx.Array) *mlx.Array {
		if c.bits > 0 {
			return mlx.Zeros(x.Thread(), mlx.Uint8, 1, x.Dim(1), n, mlx.PackedBytes(x.Dim(2), c.bits))
		}
		return mlx.Zeros(x.Thread(), x.DType(), 1, x.Dim(1), n, x.Dim(2))
	})
}

// join copies slots to memory of their own, in order, with room for n, of which the rest is zero. n of 0 is as many as
// there are.
func join(n int, parts ...slots) pair {
	var all int
	ranges := make([]int, 0, 2*len(parts))
	for _, p := range parts {
		all += p.len()
		ranges = append(ranges, p.begin, p.end)
	}
	n = cmp.Or(n, all)
	side := func(of func(pair) *mlx.Array) *mlx.Array {
		list := make([]*mlx.Array, len(parts))
		for i, p := range parts {
			list[i] = of(p.pair)
		}
		if list[0] == nil {
			return nil
		}
		return mlx.JoinSlots(ranges, n, list...)
	}
	return pair{side(func(p pair) *mlx.Array { return p.k }), side(func(p pair) *mlx.Array { return p.v })}
}

// replace installs a new version, or new storage.
func (c *stored) replace(p pair) {
	c.k = replace(c.k, p.k)
	if p.v != nil {
		c.v = replace(c.v, p.v)
	}
}

// replace keeps the new version of an array and frees the old one.
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
	c.discard()
	*c = stored{bits: c.bits, exact: c.exact}
}

// discard frees the storage.
func (c *stored) discard() {
	mlx.Free(c.k, c.v)
	mlx.Free(c.readers...)
	c.pair, c.readers = pair{}, nil
}

// firstRoom returns the positions of storage that begins with n. On a CPU it has room for a short answer only: clearing
// memory for 256 positions of each of 32 sequences takes as long as several steps.
func firstRoom(n int, t *mlx.Thread) int {
	if t.Info().GPU {
		return ceil(n)
	}
	return min((n+shortResponse+roomMultiple-1)/roomMultiple*roomMultiple, ceil(n))
}

const (
	shortResponse = 64 // positions after the first ones
	roomMultiple  = 32 // the first size is a multiple of this
)

// ceil returns the positions of storage for n: a multiple of step, or of a sixteenth of the power of two below n if
// that is more. Storage is copied when it grows, so the steps of a long context are long.
func ceil(n int) int {
	by := max(step, 1<<bits.Len(uint(max(n-1, 0)))>>5)
	return (n + by - 1) / by * by
}
