package cache

import "github.com/ingotml/ingot/mlx"

// Compressed keeps an entry, such as a key with its value, for every rate positions: entry i is of the positions
// [i*rate, (i+1)*rate) and exists once the last of these was seen. Entries must not depend on later positions. What a
// partial entry is made of is the state of another layer.
//
// It can rewind to any position and restores a snapshot if it has the positions before it.
type Compressed struct {
	rate, offset int // positions
	store        KV  // of entries
	trial
}

func (c *Compressed) kind() Kind {
	return Kind{form: compressed, rate: c.rate, bits: c.store.bits, exact: c.store.exact}
}

// Entries returns the number of entries after rows more positions.
func (c *Compressed) Entries(rows int) int { return (c.offset + rows) / c.rate }

// Offset implements Layer.
func (c *Compressed) Offset() int { return c.offset }

// State implements Layer.
func (c *Compressed) State() []*mlx.Array { return c.store.State() }

// Reserve implements Attention: it makes room for the entries that rows more positions complete. k and v are shaped
// like them.
func (c *Compressed) Reserve(k, v *mlx.Array, rows int) Storage {
	n := c.Entries(rows) - c.store.offset
	if n == 0 && len(c.store.State()) > 0 {
		return c.store.View()
	}
	return c.store.Reserve(k, v, max(n, 1))
}

// Wrote implements Attention. Without new entries the storage is the old one, or a new version of it.
func (c *Compressed) Wrote(s mlx.Store, rows int) {
	if n := c.Entries(rows) - c.store.offset; n > 0 || s.K != c.store.k {
		c.store.Wrote(s, n)
	}
	c.offset += rows
}

// View implements Attention.
func (c *Compressed) View() Storage { return c.store.View() }

// Whole implements Attention.
func (c *Compressed) Whole() Storage { return c.store.Whole() }

// Read implements Attention.
func (c *Compressed) Read(done *mlx.Array) { c.store.Read(done) }

// CanRewind implements Layer.
func (c *Compressed) CanRewind(target int) bool { return 0 <= target && target <= c.offset }

// Rewind implements Layer.
func (c *Compressed) Rewind(target int) bool {
	if c.open || !c.CanRewind(target) {
		return false
	}
	c.store.Rewind(target / c.rate)
	c.offset = target
	return true
}

// Snapshot implements Layer. It copies the entries that are complete from position from on, and returns nil if there is
// no such position.
func (c *Compressed) Snapshot(from int) *Snapshot { return c.snapshot(max(from, 0), c.offset) }

func (c *Compressed) snapshot(from, to int) *Snapshot {
	if c.open || to <= from {
		return nil
	}
	s := c.store.snapshot(from/c.rate, to/c.rate)
	if s == nil {
		s = &Snapshot{}
	}
	s.kind, s.from, s.to = c.kind(), from, to
	return s
}

// Restore implements Layer. It needs the positions before those of the snapshot.
func (c *Compressed) Restore(s *Snapshot, target int) bool {
	if s == nil {
		return c.Rewind(target)
	}
	s.check("Restore")
	if c.open || s.kind != c.kind() || target < 0 || target > s.to || c.offset < s.from {
		return false
	}
	var entries *Snapshot
	if len(s.runs) > 0 {
		entries = &Snapshot{kind: c.store.kind(), from: s.from / c.rate, to: s.to / c.rate, runs: s.runs}
	}
	c.store.Restore(entries, target/c.rate)
	c.offset = target
	return true
}

// Free implements Layer.
func (c *Compressed) Free() {
	c.store.Free()
	c.offset, c.trial = 0, trial{}
}

// begin implements Layer. Entries of the transaction are overwritten if their positions are not kept.
func (c *Compressed) begin() {
	c.trial = trial{open: true, start: c.offset}
	c.store.begin()
}

// commit implements Layer.
func (c *Compressed) commit(rows int) {
	if !c.open {
		return
	}
	c.offset = c.end(c.offset, rows)
	c.store.commit(c.offset/c.rate - c.store.start)
}

// inPlace implements Layer.
func (c *Compressed) inPlace(rows int) (k, v *mlx.Array, ok bool) {
	return c.store.inPlace(c.Entries(rows) - c.store.offset)
}

func (c *Compressed) advance(rows int) {
	c.offset += rows
	c.store.offset = c.offset / c.rate
}
