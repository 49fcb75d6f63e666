package cache

import "github.com/ingotml/ingot/mlx"

// InPlace appends the arrays of all layers that the next step of rows rows would write to. It returns false if that
// step would allocate arrays: storage must be created, grown or joined first, or a recurrent layer is in a transaction.
//
// While these arrays stay the same, steps differ only in tokens and positions; see models.Repeater.
func (s *Sequence) InPlace(rows int, to []*mlx.Array) (arrays []*mlx.Array, ok bool) {
	ok = true
	for _, l := range s.Layers {
		if l == nil {
			continue
		}
		k, v, fits := l.inPlace(rows)
		to, ok = append(to, k, v), ok && fits
	}
	return to, ok
}

// Advance accounts for rows more positions, written to the arrays of InPlace.
func (s *Sequence) Advance(rows int) {
	for _, l := range s.Layers {
		if l != nil {
			l.advance(rows)
		}
	}
}

// inPlace implements Layer.
func (c *KV) inPlace(rows int) (k, v *mlx.Array, ok bool) {
	return c.k, c.v, c.k != nil && len(c.tails) == 0 && c.offset+rows-c.base <= c.k.Dim(2)
}

// inPlace implements Layer.
func (c *Ring) inPlace(rows int) (k, v *mlx.Array, ok bool) {
	return c.k, c.v, c.k != nil && !c.resizes(c.needs(rows))
}

// inPlace implements Layer. In a transaction each step has its own state.
func (c *State) inPlace(int) (conv, delta *mlx.Array, ok bool) {
	return c.conv, c.delta, c.conv != nil && !c.open
}

func (c *stored) advance(rows int) { c.offset += rows }

func (c *State) advance(rows int) { c.offset += rows }
