package cache

import "github.com/ingotml/ingot/mlx"

// Ring keeps the keys and values of the last window positions, including the newest.
//
// Position p is at slot p mod capacity. Storage has room for a step's rows and everything they attend to, so no row of
// a step overwrites what an earlier row sees, and rows of a step can be read again or taken back. It grows by 256
// positions up to the window, beyond it while a step has more than one row, and shrinks again.
//
// Positions past the window are lost. A layer that has seen more than its window can only return to a snapshot.
type Ring struct {
	stored
	window int
}

// NewRing returns an empty ring. The window includes at least the row's own position.
func NewRing(window int) *Ring { return &Ring{window: max(window, 1)} }

func (c *Ring) kind() Kind {
	return Kind{form: rotating, window: c.window, bits: c.bits, exact: c.exact}
}

// State implements Layer.
func (c *Ring) State() []*mlx.Array { return c.arrays() }

// Reserve implements Attention.
func (c *Ring) Reserve(k, v *mlx.Array, rows int) Storage {
	capacity := c.needs(rows)
	switch {
	case c.k == nil:
		c.replace(c.room(k, v, capacity))
	case c.resizes(capacity):
		c.resize(capacity)
	}
	return c.View()
}

// needs returns the capacity for rows more positions and everything they attend to.
func (c *Ring) needs(rows int) int {
	if c.open { // rows that may be taken back must not overwrite what is kept then
		return c.capacity(c.start, c.offset-c.start+rows+1)
	}
	return c.capacity(c.offset, rows)
}

// resizes reports whether storage is too small for a capacity, or much too large.
func (c *Ring) resizes(capacity int) bool {
	return c.k.Dim(2) < capacity || c.k.Dim(2) >= capacity+step
}

// capacity returns the room for rows more positions after offset and everything they attend to.
func (c *Ring) capacity(offset, rows int) int {
	switch n := offset + rows; {
	case n <= c.window:
		return min(ceil(n), c.window)
	case rows == 1:
		return c.window
	}
	return c.window - 1 + ceil(rows)
}

// View implements Attention.
func (c *Ring) View() Storage { return c.view(c.k != nil && c.k.Dim(2) >= c.window) }

// Whole implements Attention.
func (c *Ring) Whole() Storage { return c.View() }

// Wrap grows storage to the full window, so that it can be read as a ring beside others.
func (c *Ring) Wrap() Storage {
	if c.k != nil && c.k.Dim(2) < c.window {
		c.resize(c.window)
	}
	return c.View()
}

// live returns the number of kept positions: those that a later row may attend to, and one more, which a snapshot of a
// whole window has.
func (c *Ring) live() int { return min(c.offset, c.window) }

// resize moves the live positions to storage of another capacity.
func (c *Ring) resize(capacity int) {
	c.scope(func() {
		parts := c.parts()
		live := parts[0]
		if len(parts) > 1 {
			live = join(0, parts...).all()
		}
		c.replace(arrange(live, c.offset, capacity))
	})
}

// parts returns the live positions in order, as one or two parts of the storage.
func (c *Ring) parts() []slots {
	capacity := c.k.Dim(2)
	n := c.live()
	begin := (c.offset - n) % capacity
	if past := begin + n - capacity; past > 0 {
		return []slots{c.slots(begin, capacity), c.slots(0, past)}
	}
	return []slots{c.slots(begin, begin+n)}
}

// arrange copies positions that end before offset into the slots of new storage.
func arrange(live slots, offset, capacity int) pair {
	n := live.len()
	begin := (offset - n) % capacity
	if past := begin + n - capacity; past > 0 {
		return join(0, live.part(n-past, n), live.zeros(capacity-n).all(), live.part(0, n-past))
	}
	if begin == 0 {
		return join(capacity, live)
	}
	return join(capacity, live.zeros(begin).all(), live)
}

// CanRewind implements Layer. It can rewind only while no position is past the window.
func (c *Ring) CanRewind(target int) bool {
	return target == 0 || target == c.offset || 0 < target && target < c.offset && c.offset <= c.window
}

// Rewind implements Layer.
func (c *Ring) Rewind(target int) bool {
	if c.open || !c.CanRewind(target) {
		return false
	}
	if target == 0 {
		c.Free()
	}
	c.offset = target
	return true
}

// Snapshot implements Layer. It copies the whole window.
func (c *Ring) Snapshot(from int) (s *Snapshot) {
	if c.offset > 0 && !c.open {
		s = &Snapshot{kind: c.kind(), from: max(from, 0), to: c.offset, arrays: copied(c.parts()...).arrays()}
	}
	return s
}

// Restore implements Layer. It needs nothing from the layer. It moves to the snapshot's end, or earlier if no position
// is past the window.
func (c *Ring) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	if c.open || s.kind != c.kind() || target < 0 || target > s.to || target < s.to && s.to > c.window {
		return false
	}
	if target == 0 {
		return c.Rewind(0)
	}
	whole := pairOf(s.arrays)
	whole.scope(func() {
		restored := arrange(whole.slots(0, min(target, c.window)), target, c.capacity(target, 1))
		c.Free()
		c.replace(restored)
	})
	c.offset = target
	return true
}

// Free implements Layer.
func (c *Ring) Free() { c.free() }
