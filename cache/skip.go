package cache

import "github.com/ingotml/ingot/mlx"

// Skip advances by n positions that are not computed: their keys and values are zeros, and recurrent states stay as
// they are. It is for measuring the time of steps at a depth. The sequence has seen at least one token, and is outside
// a transaction.
func (s *Sequence) Skip(n int) {
	for _, l := range s.Layers {
		if l != nil {
			l.skip(n)
		}
	}
	mlx.Eval(s.State()...)
}

// skip implements Layer.
func (c *KV) skip(n int) {
	if c.k.Dim(2) < c.offset+n-c.base {
		c.regrow(c.offset + n)
	}
	c.offset += n
}

// skip implements Layer.
func (c *Ring) skip(n int) {
	if capacity := c.capacity(c.offset+n, 1); c.resizes(capacity) {
		c.resize(capacity)
	}
	c.offset += n
}

// skip implements Layer.
func (c *State) skip(n int) { c.offset += n }

// skip implements Layer.
func (c *Compressed) skip(n int) {
	if entries := c.Entries(n) - c.store.offset; entries > 0 && c.store.k != nil {
		c.store.skip(entries)
	}
	c.offset += n
}

// skip implements Layer.
func (c *Elsewhere) skip(n int) { c.advance(n) }
