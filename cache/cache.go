// Package cache holds what a model remembers of a sequence: per layer, the state that attention or recurrence needs.
//
// A [Sequence] owns one [Layer] per layer of its model; a layer that keeps nothing has a nil one. All layers of a
// sequence stand at one offset between forwards. Everything here runs on the engine's thread, inside mlx.Thread.Do;
// the arrays are kept beyond scopes and freed by Free.
package cache

import (
	"fmt"

	"github.com/ingotml/ingot/mlx"
)

// Layer is the state of one layer for one sequence.
type Layer interface {
	// Offset is the number of tokens seen.
	Offset() int
	// State gives the live arrays; empty before the first update.
	State() []*mlx.Array
	// Rewind forgets the tokens from target on. It is false, and changes nothing, where the layer cannot go there.
	Rewind(target int) bool
	// Free gives up all state; the offset is 0 then.
	Free()
}

// Attention is a Layer that keeps keys and values.
type Attention interface {
	Layer
	// Update appends keys and values [1, heads, rows, dim] and gives the history that the new rows may attend to,
	// the new ones included, in order of position.
	Update(k, v *mlx.Array) History
}

// History is what rows attend to: keys and values [1, heads, length, dim].
type History struct{ K, V *mlx.Array }

// Kind says which state a layer of a model keeps.
type Kind int

// The kinds.
const (
	None Kind = iota // no state of its own
	Full             // keys and values of all positions
)

// Sequence is the state of one sequence of tokens.
type Sequence struct {
	Layers []Layer // nil for layers that keep nothing
}

// NewSequence makes the empty state of a model with these kinds of layers.
func NewSequence(kinds []Kind) *Sequence {
	s := &Sequence{Layers: make([]Layer, len(kinds))}
	for i, k := range kinds {
		switch k {
		case None:
		case Full:
			s.Layers[i] = &KV{}
		default:
			panic(fmt.Sprintf("cache: unknown kind %d of layer %d", k, i)) // a model's bug, not an input's
		}
	}
	return s
}

// Offset is the number of tokens that all layers have seen. Layers that differ are a bug of the caller, who left a
// forward halfway and must Free or Rewind.
func (s *Sequence) Offset() int {
	offset, found := 0, false
	for _, l := range s.Layers {
		if l == nil {
			continue
		}
		if found && l.Offset() != offset {
			panic(fmt.Sprintf("cache: layers stand at %d and %d", offset, l.Offset()))
		}
		offset, found = l.Offset(), true
	}
	return offset
}

// State gives the live arrays of all layers.
func (s *Sequence) State() []*mlx.Array {
	var all []*mlx.Array
	for _, l := range s.Layers {
		if l != nil {
			all = append(all, l.State()...)
		}
	}
	return all
}

// Rewind forgets the tokens from target on. Where a layer cannot, all state is freed and the result is false: a miss,
// never layers that differ.
func (s *Sequence) Rewind(target int) bool {
	for _, l := range s.Layers {
		if l != nil && !l.Rewind(target) {
			s.Free()
			return false
		}
	}
	return true
}

// Free gives up all state.
func (s *Sequence) Free() {
	for _, l := range s.Layers {
		if l != nil {
			l.Free()
		}
	}
}
