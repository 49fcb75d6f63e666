package cache

import "github.com/ingotml/ingot/mlx"

// kvStep is the number of positions by which storage grows.
const kvStep = 256

// KV keeps the keys and values of all positions. The zero value is empty.
//
// Storage is written in place: a step makes a new version of the arrays over the same memory and drops the old one.
// Data flow puts a step behind the one before it, and the arrays given to Read put it behind those that only read.
type KV struct {
	k, v    *mlx.Array // [1, heads, capacity, dim]; nil when empty, v also where the values are a part of the keys
	offset  int
	readers []*mlx.Array // of this version
}

// Offset implements Layer.
func (c *KV) Offset() int { return c.offset }

// State implements Layer.
func (c *KV) State() []*mlx.Array {
	if c.k == nil {
		return nil
	}
	if c.v == nil {
		return []*mlx.Array{c.k}
	}
	return []*mlx.Array{c.k, c.v}
}

// Reserve implements Attention. What lies past the offset is not carried over.
func (c *KV) Reserve(k, v *mlx.Array, rows int) Storage {
	if n := c.offset + rows; c.k == nil || c.k.Dim(2) < n {
		capacity := (n + kvStep - 1) / kvStep * kvStep
		newK := c.grown(c.k, k, capacity)
		if v != nil {
			c.v = replace(c.v, c.grown(c.v, v, capacity))
		}
		c.k = replace(c.k, newK)
	}
	return c.View()
}

// View implements Attention.
func (c *KV) View() Storage { return Storage{Store: mlx.Store{K: c.k, V: c.v}, After: c.readers} }

// Wrote implements Attention.
func (c *KV) Wrote(s mlx.Store, rows int) {
	c.k = replace(c.k, s.K)
	if s.V != nil {
		c.v = replace(c.v, s.V)
	}
	mlx.Free(c.readers...)
	c.readers = nil
	c.offset += rows
}

// Read implements Attention.
func (c *KV) Read(done *mlx.Array) { c.readers = append(c.readers, mlx.Keep(done)) }

// grown is storage for rows like [T, heads, dim], with what the old one holds.
func (c *KV) grown(old, like *mlx.Array, capacity int) *mlx.Array {
	room := mlx.Zeros(like.Thread(), like.DType(), 1, like.Dim(1), capacity, like.Dim(2))
	if c.offset == 0 {
		return room
	}
	live := mlx.Range(0, c.offset)
	return mlx.SliceUpdate(room, mlx.SliceAxis(old, 2, live), mlx.All(), mlx.All(), live, mlx.All())
}

// Rewind implements Layer.
func (c *KV) Rewind(target int) bool {
	if target < 0 || target > c.offset {
		return false
	}
	c.offset = target
	return true
}

// Free implements Layer.
func (c *KV) Free() {
	mlx.Free(c.k, c.v)
	mlx.Free(c.readers...)
	*c = KV{}
}

// replace keeps the new version of an array and ends the old one's life here.
func replace(old, new *mlx.Array) *mlx.Array {
	mlx.Keep(new)
	if old != new {
		mlx.Free(old)
	}
	return new
}
