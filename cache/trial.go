package cache

import (
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// Begin starts a transaction. The next forward passes, any number of them, add rows, and Commit keeps the first of
// these. Until then offsets count all rows. Inside a transaction nothing is copied or restored; only one is open at a
// time, and Free ends it too.
//
// A transaction never changes the state before it: after Commit(0) the sequence is as it was.
func (s *Sequence) Begin() {
	s.Offset() // panics if layers differ
	for _, l := range s.Layers {
		if l != nil {
			l.begin()
		}
	}
}

// Commit ends a transaction and keeps its first rows rows: none if negative, all if there are fewer. Without a
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

// end returns the offset after the transaction keeps rows rows.
func (t *trial) end(offset, rows int) int {
	if !t.open {
		return offset
	}
	t.open = false
	return t.start + min(max(rows, 0), offset-t.start)
}

// begin implements Layer. Rows are written in place; storage holds what they and all earlier rows attend to.
func (c *stored) begin() { c.trial = trial{open: true, start: c.offset} }

// commit implements Layer.
func (c *stored) commit(rows int) { c.offset = c.end(c.offset, rows) }

// update is the effect of one step of a transaction on a State.
type update struct {
	conv, delta *mlx.Array // before the step; nil at the start
	rows        int
	redo        func(rows int) (conv, delta *mlx.Array)
	inputs      []*mlx.Array // of redo
}

func (u *update) free() {
	mlx.Free(u.conv, u.delta)
	mlx.Free(u.inputs...)
}

// begin implements Layer. From here on each step makes new arrays and the old ones stay.
func (c *State) begin() { c.trial = trial{open: true, start: c.offset} }

// Trying reports whether the next step belongs to a transaction: its new state must not overwrite the old one.
func (c *State) Trying() bool { return c.open }

// Redo registers how to compute the state after the first rows of the last step from the state before it. Commit may
// call it, once. inputs are arrays that redo needs; the layer owns them from now on.
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
	cut := slices.IndexFunc(c.updates, func(u update) bool { // first step that is not kept whole
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
			u.conv, u.delta = nil, nil // owned by the layer again
		}
	}
	c.offset = c.end(offset, rows)
	c.forget()
}

// forget frees what a transaction could return to.
func (c *State) forget() {
	for i := range c.updates {
		c.updates[i].free()
	}
	c.updates = nil
}
