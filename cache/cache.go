// Package cache holds what a model remembers of a sequence: per layer, the state that attention or recurrence needs.
//
// A [Sequence] owns one [Layer] per layer of its model; a layer that keeps nothing has a nil one. All layers of a
// sequence stand at one offset between forwards. Layers come in kinds: [KV], [Ring] and [State].
//
// A [Snapshot] is a copy of a layer's state at an offset, from which it or another layer of the kind can go on: the kinds
// differ in what else they can restore from it. Wherever state cannot be restored the answer is false, a miss, and the
// tokens are evaluated again.
//
// Everything here runs on the engine's thread, inside mlx.Thread.Do; the arrays are kept beyond scopes and freed by Free
// and Close.
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
	// CanRewind reports whether Rewind would.
	CanRewind(target int) bool
	// Rewind forgets the tokens from target on. It is false, and changes nothing, where the layer cannot go there; to 0
	// and to its offset every layer can.
	Rewind(target int) bool
	// Snapshot copies the state; nil where there is nothing to copy. Of what keeps all positions it holds those from from
	// on, of the rest all that there is.
	Snapshot(from int) *Snapshot
	// Restore goes to target, at most the snapshot's end, with what the snapshot holds and what the layer has of the
	// positions before it. It is false, and changes nothing, where that does not give the state. The snapshot stays the
	// caller's. Without one it is Rewind.
	Restore(s *Snapshot, target int) bool
	// Free gives up all state; the offset is 0 then.
	Free()

	begin()                                      // see Sequence.Begin
	commit(rows int)                             // see Sequence.Commit
	inPlace(rows int) (k, v *mlx.Array, ok bool) // see Sequence.InPlace
	advance(rows int)                            // see Sequence.Advance
}

// Attention is a Layer that keeps keys and values, which [mlx.Attend] writes and reads in place.
//
// A step is Reserve, Attend over the storage that it gave, Wrote. What reads without writing takes View, and says so with
// Read: on a CPU nothing else would keep the next write behind it.
type Attention interface {
	Layer
	// Reserve makes room for keys and values of rows more positions, which are like k and v [T, heads, dim]; v is nil where
	// the values are a part of the keys.
	Reserve(k, v *mlx.Array, rows int) Storage
	// Wrote takes the new version of the storage, with rows more positions.
	Wrote(s mlx.Store, rows int)
	// View is the storage as it is now; empty before the first step.
	View() Storage
	// Read notes an array that is computed once the storage of View has been read.
	Read(done *mlx.Array)
}

// Storage is keys and values as they lie in memory, as numbers or packed.
type Storage struct {
	mlx.Store
	Ring  bool         // position p lies in slot p mod capacity, else in slot p
	After []*mlx.Array // what reads this version, and must have before it is written
}

// Kind says which state a layer of a model keeps. Kinds can be compared.
type Kind struct {
	form   form
	window int
	bits   int // of keys and values, 0 is as they come
}

type form uint8

const (
	none form = iota
	full
	rotating
	recurrent
)

// The kinds.
var (
	None      = Kind{}                // no state of its own
	Full      = Kind{form: full}      // a [KV]: keys and values of all positions
	Recurrent = Kind{form: recurrent} // a [State]: of a convolution and a gated delta rule
)

// Rotating is a [Ring]: keys and values of the last window positions, the newest one included. A window of 0 is none: Full.
func Rotating(window int) Kind {
	if window <= 0 {
		return Full
	}
	return Kind{form: rotating, window: window}
}

// Packed is the kinds with keys and values in 8 or 4 bits, as [mlx.PackRows] gives them; 0 is as they come. Each position
// is packed once, when it is written, and by itself: how tokens come in steps makes no difference, and a snapshot holds the
// same bytes. Other state stays as it is.
func Packed(kinds []Kind, bits int) []Kind {
	all := make([]Kind, len(kinds))
	for i, k := range kinds {
		if k.form == full || k.form == rotating {
			k.bits = bits
		}
		all[i] = k
	}
	return all
}

// Whole reports whether a layer keeps all positions, so that it goes back to any: a [KV], packed or not.
func (k Kind) Whole() bool { return k.form == full }

// new makes the empty state; nil where there is none.
func (k Kind) new() Layer {
	switch k.form {
	case full:
		return &KV{stored: stored{bits: k.bits}}
	case rotating:
		r := NewRing(k.window)
		r.bits = k.bits
		return r
	case recurrent:
		return &State{}
	}
	return nil
}

// Sequence is the state of one sequence of tokens.
type Sequence struct {
	Layers []Layer // nil for layers that keep nothing
}

// NewSequence makes the empty state of a model with these kinds of layers.
func NewSequence(kinds []Kind) *Sequence {
	s := &Sequence{Layers: make([]Layer, len(kinds))}
	for i, k := range kinds {
		s.Layers[i] = k.new()
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

// Snapshot copies the state of all layers: see [Layer].
func (s *Sequence) Snapshot(from int) Snapshots {
	all := make(Snapshots, len(s.Layers))
	for i, l := range s.Layers {
		if l != nil {
			all[i] = l.Snapshot(from)
		}
	}
	return all
}

// Restore brings all layers to target with a snapshot of each; without one a layer rewinds. Where a layer cannot, all state
// is freed and the result is false: a miss, never layers that differ.
func (s *Sequence) Restore(snapshots Snapshots, target int) bool {
	for i, l := range s.Layers {
		if l != nil && !l.Restore(snapshots.of(i), target) {
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
