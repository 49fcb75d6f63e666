package cache

import "github.com/ingotml/ingot/mlx"

// State keeps what a recurrent layer carries from one token to the next: the tail of the rows that its convolution has
// seen, and the memory of its gated delta rule. The zero value is empty.
//
// A step is Arrays, the operations that make the new ones ([mlx.CausalConv], [mlx.GatedDeltaRows]), Advance. The old arrays
// end with Advance, so the new memory may take the place of the old one.
type State struct {
	conv   *mlx.Array // [taps-1, width]
	delta  *mlx.Array // float32 [value heads, value dim, key dim]
	offset int
}

// Arrays gives the rows before the next one, [taps-1, width], and the memory, float32 [value heads, value dim, key dim];
// both are nil before the first step, which begins with zeros.
func (c *State) Arrays() (conv, delta *mlx.Array) { return c.conv, c.delta }

// Advance takes the state after rows more positions.
func (c *State) Advance(conv, delta *mlx.Array, rows int) {
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
	return []*mlx.Array{c.conv, c.delta}
}

// Rewind implements Layer. The state of an earlier position is gone, but for that of position 0.
func (c *State) Rewind(target int) bool {
	if target == 0 {
		c.Free()
	}
	return target == c.offset
}

// Free implements Layer.
func (c *State) Free() {
	mlx.Free(c.conv, c.delta)
	*c = State{}
}
