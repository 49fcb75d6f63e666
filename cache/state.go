package cache

import "github.com/ingotml/ingot/mlx"

// State keeps a recurrent layer's state: the last rows seen by its convolution, and the state of its recurrence, such
// as a gated delta rule or a selective scan. A layer that is only a convolution has none. A layer without a convolution
// keeps the state of its recurrence in place of these rows. The zero value is empty.
//
// A step calls Arrays, the operations that make the new arrays ([mlx.CausalConv], [mlx.GatedDeltaRows]), and Advance.
// Advance ends the old arrays, so the new ones reuse their memory, except while Trying, when Redo follows.
type State struct {
	conv   *mlx.Array // [taps-1, width]
	delta  *mlx.Array // float32, of a shape that the layer chooses; nil if it is only a convolution
	offset int

	trial
	updates []update // steps of the transaction
}

// Arrays returns the rows before the next one, [taps-1, width], and the state of the recurrence, such as float32 [value
// heads, value dim, key dim]. Both are nil before the first step, which starts from zeros.
func (c *State) Arrays() (conv, delta *mlx.Array) { return c.conv, c.delta }

// Advance stores the state after rows more positions.
func (c *State) Advance(conv, delta *mlx.Array, rows int) {
	if c.open {
		c.updates = append(c.updates, update{conv: c.conv, delta: c.delta, rows: rows})
		c.conv, c.delta = nil, nil
	}
	c.conv = replace(c.conv, conv)
	c.delta = replace(c.delta, delta)
	c.offset += rows
}

// Offset implements Layer.
func (c *State) Offset() int { return c.offset }

// State implements Layer.
func (c *State) State() []*mlx.Array {
	if c.conv == nil {
		return nil
	}
	return present(c.conv, c.delta)
}

// present returns the arrays of a state without an absent recurrence.
func present(conv, delta *mlx.Array) []*mlx.Array {
	if delta == nil {
		return []*mlx.Array{conv}
	}
	return []*mlx.Array{conv, delta}
}

// CanRewind implements Layer. Earlier states are lost, except for position 0.
func (c *State) CanRewind(target int) bool { return target == 0 || target == c.offset }

// Rewind implements Layer.
func (c *State) Rewind(target int) bool {
	if c.open {
		return false
	}
	if target == 0 {
		c.Free()
	}
	return target == c.offset
}

// Free implements Layer.
func (c *State) Free() {
	c.forget()
	mlx.Free(c.conv, c.delta)
	*c = State{}
}

// Snapshot implements Layer. It copies the whole state.
func (c *State) Snapshot(from int) *Snapshot {
	if c.conv == nil || c.open {
		return nil
	}
	arrays := owned(c.conv.Thread(), func() []*mlx.Array {
		arrays := c.State()
		for i, a := range arrays {
			arrays[i] = mlx.Copy(a)
		}
		return arrays
	})
	return &Snapshot{kind: Recurrent, from: max(from, 0), to: c.offset, arrays: arrays}
}

// Restore implements Layer. It needs nothing from the layer and moves to the snapshot's end only.
func (c *State) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	if c.open || s.kind != Recurrent || target != s.to {
		return false
	}
	// The layer writes its state in place; the snapshot must not change.
	conv, delta := mlx.Copy(s.arrays[0]), (*mlx.Array)(nil)
	if len(s.arrays) > 1 {
		delta = mlx.Copy(s.arrays[1])
	}
	c.Free()
	c.Advance(conv, delta, target)
	return true
}
