package cache

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// Begin starts a transaction: of the rows that the next forwards add, in any number of them, Commit keeps the first ones. Offsets count
// all rows until then. Inside a transaction nothing is copied or restored, and one is open at a time; Free ends it, too.
//
// What a transaction adds never changes the state before it: one that ends with Commit(0) leaves the sequence as it was.
func (s *Sequence) Begin() {
	s.Offset() // layers that differ
	for _, l := range s.Layers {
		if l != nil {
			l.begin()
		}
	}
}

// Commit ends a transaction and keeps the first rows that were added in it: none for less than 0, all for more than there are. Without a
// transaction it does nothing.
func (s *Sequence) Commit(rows int) {
	for _, l := range s.Layers {
		if l != nil {
			l.commit(rows)
		}
	}
}

// trial is a transaction of a layer.
type trial struct {
	open  bool
	start int // offset
}

// end gives the offset that is left of one with so many rows kept.
func (t *trial) end(offset, rows int) int {
	if !t.open {
		return offset
	}
	t.open = false
	return t.start + min(max(rows, 0), offset-t.start)
}

// begin implements Layer. Rows are written where they belong; storage holds what they and all before them see.
func (c *stored) begin() { c.trial = trial{open: true, start: c.offset} }

// commit implements Layer.
func (c *stored) commit(rows int) { c.offset = c.end(c.offset, rows) }

// update is what a step of a transaction does to a State.
type update struct {
	conv, delta *mlx.Array // before it; nil at the start
	rows        int
	redo        func(rows int) (conv, delta *mlx.Array)
	inputs      []*mlx.Array // of redo
}

func (u *update) free() {
	mlx.Free(u.conv, u.delta)
	mlx.Free(u.inputs...)
}

// begin implements Layer: from here on each step makes new arrays, and the old ones stay.
func (c *State) begin() { c.trial = trial{open: true, start: c.offset} }

// Trying reports whether the next step is a part of a transaction: its new memory must not take the place of the old one.
func (c *State) Trying() bool { return c.open }

// Redo says how to make the state after the first rows of the step that was taken last, fewer than it had, from the state before it; Commit
// may call it, once. inputs are arrays that redo needs, and are the layer's from now on.
func (c *State) Redo(redo func(rows int) (conv, delta *mlx.Array), inputs ...*mlx.Array) {
	u := &c.updates[len(c.updates)-1]
	mlx.Keep(inputs...)
	u.redo, u.inputs = redo, inputs
}

// commit implements Layer.
func (c *State) commit(rows int) {
	offset := c.offset
	if !c.open {
		return
	}
	rows = min(max(rows, 0), offset-c.start)
	left := rows
	cut := slices.IndexFunc(c.updates, func(u update) bool { // the first that does not stay whole
		if left < u.rows {
			return true
		}
		left -= u.rows
		return false
	})
	if cut >= 0 {
		u := &c.updates[cut]
		conv, delta := u.conv, u.delta
		if left > 0 {
			if u.redo == nil {
				panic(&mlx.Error{Message: "Commit: a part of a step that cannot be taken again"})
			}
			conv, delta = u.redo(left)
		}
		mlx.Free(c.conv, c.delta)
		mlx.Keep(conv, delta)
		c.conv, c.delta = conv, delta
		if left == 0 {
			u.conv, u.delta = nil, nil // the layer's again
		}
	}
	c.offset = c.end(offset, rows)
	c.forget()
}

// forget gives up what a transaction could go back to.
func (c *State) forget() {
	for i := range c.updates {
		c.updates[i].free()
	}
	c.updates = nil
}
