package cache

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// KV keeps the keys and values of all positions. The zero value is empty.
//
// It can rewind to any position and restores a snapshot if it has the positions before it. Storage grows by 256
// positions, beyond 8192 by 1/32 to 1/16 of its size.
type KV struct {
	stored
	tails []tail // restored but not yet joined to the storage, in order, so that a path of many snapshots is copied once
}

// tail holds positions from at on. It is valid up to the start of the next tail or the end of the cache.
type tail struct {
	slots
	at int
}

func (c *KV) kind() Kind { return Kind{form: full, bits: c.bits, exact: c.exact} }

// State implements Layer.
func (c *KV) State() []*mlx.Array {
	c.join(c.offset)
	return c.arrays()
}

// Reserve implements Attention. It does not copy storage past the offset.
func (c *KV) Reserve(k, v *mlx.Array, rows int) Storage {
	n := c.offset + rows
	switch {
	case c.k == nil && len(c.tails) == 0:
		c.replace(c.room(k, v, ceil(n)))
	case c.k != nil && c.offset == 0 && c.k.Dim(2) < n:
		c.replace(c.zeros(ceil(n)))
	case c.k == nil || c.k.Dim(2) < n:
		c.regrow(n)
	default:
		c.join(n)
	}
	return c.view(false)
}

// View implements Attention.
func (c *KV) View() Storage {
	c.join(c.offset)
	return c.view(false)
}

// join copies the tails into storage for n positions.
func (c *KV) join(n int) {
	if len(c.tails) > 0 {
		c.regrow(n)
	}
}

// regrow copies all positions to new storage for n.
func (c *KV) regrow(n int) {
	parts := c.parts()
	parts[0].scope(func() { c.replace(join(ceil(n), parts...)) })
	c.drop(0)
}

// parts returns all positions in order.
func (c *KV) parts() []slots {
	var parts []slots
	end := c.offset
	for _, t := range slices.Backward(c.tails) {
		parts = append(parts, t.part(0, end-t.at))
		end = t.at
	}
	if end > 0 {
		parts = append(parts, c.slots(0, end))
	}
	slices.Reverse(parts)
	return parts
}

// restored returns the bytes that are not in the storage yet.
func (c *KV) restored() (n int64) {
	for _, t := range c.tails {
		for _, x := range t.arrays() {
			n += int64(x.Bytes()) / int64(x.Dim(2)) * int64(t.len())
		}
	}
	return n
}

// drop removes the tails from position target on.
func (c *KV) drop(target int) {
	for n := len(c.tails); n > 0 && c.tails[n-1].at >= target; n-- {
		mlx.Free(c.tails[n-1].k, c.tails[n-1].v)
		c.tails = c.tails[:n-1]
	}
}

// CanRewind implements Layer.
func (c *KV) CanRewind(target int) bool { return 0 <= target && target <= c.offset }

// Rewind implements Layer.
func (c *KV) Rewind(target int) bool {
	if c.open || !c.CanRewind(target) {
		return false
	}
	c.drop(target)
	c.offset = target
	return true
}

// Snapshot implements Layer. It copies the positions from from on, and returns nil if there are none.
func (c *KV) Snapshot(from int) *Snapshot { return c.snapshot(max(from, 0), c.offset) }

// snapshot copies the positions [from, to), and returns nil if there are none.
func (c *KV) snapshot(from, to int) (s *Snapshot) {
	if c.open || to <= from {
		return nil
	}
	c.join(c.offset)
	c.scope(func() { s = joined(c.kind(), from, to, c.slots(from, to)) })
	return s
}

// Restore implements Layer. It needs the positions before those of the snapshot.
func (c *KV) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	if c.open || s.kind != c.kind() || target < 0 || target > s.to || c.offset < s.from {
		return false
	}
	c.Rewind(min(s.from, target))
	if target > s.from {
		// The snapshot may be closed before the storage is needed, so keep handles.
		p := s.pair().each(func(x *mlx.Array) *mlx.Array { return mlx.SliceAxis(x, 2, mlx.Range(0, x.Dim(2))) })
		mlx.Keep(p.k, p.v)
		c.tails = append(c.tails, tail{p.slots(0, target-s.from), s.from})
		c.offset = target
	}
	return true
}

// Free implements Layer.
func (c *KV) Free() {
	c.drop(0)
	c.free()
}
