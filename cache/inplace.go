package cache

import "github.com/ingotml/ingot/mlx"

// InPlace appends the arrays of all layers, to which the next step of so many rows would write. It is false where that
// step would make arrays of its own: storage is to be made, moved or joined first, or a recurrent layer is in a transaction.
//
// As long as these stay the same arrays, steps differ in tokens and positions only (see models.Repeater).
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

// Advance takes rows more positions that were written to the arrays of InPlace.
func (s *Sequence) Advance(rows int) {
	for _, l := range s.Layers {
		if l != nil {
			l.advance(rows)
		}
	}
}

// inPlace implements Layer.
func (c *KV) inPlace(rows int) (k, v *mlx.Array, ok bool) {
	return c.k, c.v, c.k != nil && len(c.tails) == 0 && c.offset+rows <= c.k.Dim(2)
}

// inPlace implements Layer.
func (c *Ring) inPlace(rows int) (k, v *mlx.Array, ok bool) {
	return c.k, c.v, c.k != nil && !c.resizes(c.needs(rows))
}

// inPlace implements Layer: in a transaction each step has a state of its own.
func (c *State) inPlace(int) (conv, delta *mlx.Array, ok bool) {
	return c.conv, c.delta, c.conv != nil && !c.open
}

func (c *stored) advance(rows int) { c.offset += rows }

func (c *State) advance(rows int) { c.offset += rows }
