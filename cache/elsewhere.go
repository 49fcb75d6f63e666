package cache

import "github.com/ingotml/ingot/mlx"

// Elsewhere is a layer whose state another rank has. It has no arrays, but the offset of that layer, and its methods
// return what that layer's would. So ranks that each have some of the layers agree on what a sequence can do. Sizes are
// estimates of what the other rank holds.
type Elsewhere struct {
	of     Kind
	offset int
	trial
}

// elsewhere is the size of the state of a layer that another rank has.
type elsewhere struct {
	elements int64 // of a position, of an entry, or of recurrent state; 0: the layer is on this rank
	size     int64 // bytes of an element
}

// Elsewhere returns the kind of a layer on another rank: an [Elsewhere]. elements is the number of elements of a
// position, of an entry, or of recurrent state, and size the bytes of each if they are not quantized.
func (k Kind) Elsewhere(elements, size int64) Kind {
	if k.form != none {
		k.other = elsewhere{max(elements, 1), size}
	}
	return k
}

// isElsewhere reports whether another rank has the state.
func (k Kind) isElsewhere() bool { return k.other.elements > 0 }

// bytes returns the size of a position, of an entry, or of recurrent state of a layer on another rank.
func (k Kind) bytes() int64 {
	switch {
	case k.form == recurrent:
		return 4 * k.other.elements // mostly float32
	case k.bits > 0:
		return k.other.elements * int64(k.bits+1) / 8 // a group's scale and bias take one bit per element
	}
	return k.other.elements * k.other.size
}

// Offset implements Layer.
func (c *Elsewhere) Offset() int { return c.offset }

// State implements Layer.
func (c *Elsewhere) State() []*mlx.Array { return nil }

// CanRewind implements Layer.
func (c *Elsewhere) CanRewind(target int) bool {
	switch {
	case target == 0 || target == c.offset:
		return true
	case c.of.form == recurrent || target < 0 || target > c.offset:
		return false
	}
	return c.of.Whole() || c.offset <= c.of.window
}

// Rewind implements Layer.
func (c *Elsewhere) Rewind(target int) bool {
	if c.open || !c.CanRewind(target) {
		return false
	}
	c.offset = target
	return true
}

// Snapshot implements Layer.
func (c *Elsewhere) Snapshot(from int) *Snapshot {
	from = max(from, 0)
	if c.open || c.offset == 0 || c.of.Whole() && c.offset <= from {
		return nil
	}
	return &Snapshot{kind: c.of, from: from, to: c.offset}
}

// Restore implements Layer.
func (c *Elsewhere) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	switch {
	case c.open || s.kind != c.of || target < 0 || target > s.to:
		return false
	case c.of.Whole() && c.offset < s.from:
		return false
	case c.of.form == recurrent && target < s.to:
		return false
	case c.of.form == rotating && target < s.to && s.to > c.of.window:
		return false
	}
	c.offset = target
	return true
}

// Free implements Layer.
func (c *Elsewhere) Free() { c.offset, c.trial = 0, trial{} }

func (c *Elsewhere) begin() { c.trial = trial{open: true, start: c.offset} }

func (c *Elsewhere) commit(rows int) { c.offset = c.end(c.offset, rows) }

func (c *Elsewhere) inPlace(int) (k, v *mlx.Array, ok bool) { return nil, nil, true }

func (c *Elsewhere) advance(rows int) { c.offset += rows }

// elsewhere returns the bytes that another rank keeps for a snapshot of a layer that it has.
func (s *Snapshot) elsewhere() int64 {
	if !s.kind.isElsewhere() {
		return 0
	}
	n := s.to - s.from
	switch k := s.kind; k.form {
	case recurrent:
		n = 1
	case rotating:
		n = min(s.to, k.window)
	case compressed:
		n = k.entries(s.to) - k.entries(s.from)
	}
	return int64(n) * s.kind.bytes()
}

// AdvanceElsewhere accounts for rows more positions in the layers that other ranks have.
func (s *Sequence) AdvanceElsewhere(rows int) {
	for _, l := range s.Layers {
		if c, ok := l.(*Elsewhere); ok {
			c.advance(rows)
		}
	}
}
