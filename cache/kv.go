package cache

import "github.com/ingotml/ingot/mlx"

// kvStep is the number of positions by which storage grows.
const kvStep = 256

// KV keeps the keys and values of all positions. The zero value is empty.
//
// Storage is written in place: an update makes a new version of the array and drops the old one, so that the engine
// may reuse its memory. Readers of the old version must therefore have been dispatched; histories live no longer
// than the forward that asked for them.
type KV struct {
	k, v   *mlx.Array // [1, heads, capacity, dim]; nil when empty
	offset int
}

// Offset implements Layer.
func (c *KV) Offset() int { return c.offset }

// State implements Layer.
func (c *KV) State() []*mlx.Array {
	if c.k == nil {
		return nil
	}
	return []*mlx.Array{c.k, c.v}
}

// Update implements Attention.
func (c *KV) Update(k, v *mlx.Array) History {
	rows := k.Dim(2)
	c.reserve(k, v, c.offset+rows)
	span := mlx.Range(c.offset, c.offset+rows)
	c.k = replace(c.k, mlx.SliceUpdate(c.k, k, mlx.All(), mlx.All(), span, mlx.All()))
	c.v = replace(c.v, mlx.SliceUpdate(c.v, v, mlx.All(), mlx.All(), span, mlx.All()))
	c.offset += rows
	return c.history()
}

func (c *KV) history() History {
	live := mlx.Range(0, c.offset)
	return History{K: mlx.SliceAxis(c.k, 2, live), V: mlx.SliceAxis(c.v, 2, live)}
}

// reserve makes room for n positions; what lies past the offset is not carried over.
func (c *KV) reserve(k, v *mlx.Array, n int) {
	if c.k != nil && c.k.Dim(2) >= n {
		return
	}
	capacity := (n + kvStep - 1) / kvStep * kvStep
	c.k = replace(c.k, c.grown(c.k, k, capacity))
	c.v = replace(c.v, c.grown(c.v, v, capacity))
}

func (c *KV) grown(old, like *mlx.Array, capacity int) *mlx.Array {
	shape := []int{1, like.Dim(1), capacity, like.Dim(3)}
	room := mlx.Zeros(like.Thread(), like.DType(), shape...)
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
	*c = KV{}
}

// replace keeps the new version of an array and ends the old one's life here.
func replace(old, new *mlx.Array) *mlx.Array {
	mlx.Keep(new)
	mlx.Free(old)
	return new
}
