// Package cache holds the state of a sequence: per layer, the KV cache or recurrent state.
//
// A [Sequence] owns one [Layer] per layer of its model; layers without state are nil. Between forward passes all layers
// of a sequence are at the same offset. The kinds of layers are [KV],
// [Ring], [Compressed] and [State].
//
// A [Snapshot] is a layer's state at an offset. It restores that state in this or another layer of the same kind; kinds
// differ in which other offsets they can restore. If a state cannot be restored, methods return false: a cache miss,
// and the caller evaluates the tokens again.
//
// Everything runs on the engine's thread, inside mlx.Thread.Do. Arrays are kept beyond scopes; Free and Close free
// them.
package cache

import (
	"fmt"

	"github.com/ingotml/ingot/mlx"
)

// Layer is the state of one layer for one sequence.
type Layer interface {
	// Offset returns the number of tokens seen.
	Offset() int
	// State returns the live arrays. It is empty before the first update.
	State() []*mlx.Array
	// CanRewind reports whether Rewind would succeed.
	CanRewind(target int) bool
	// Rewind drops the tokens from target on. It returns false and changes nothing if the layer cannot rewind to target.
	// Every layer can rewind to 0 and to its offset.
	Rewind(target int) bool
	// Snapshot returns the state, or nil if there is none. Layers that keep all positions include those from position from
	// on; others include everything.
	Snapshot(from int) *Snapshot
	// Restore moves the layer to target, at most the snapshot's end, using the snapshot and the layer's own earlier
	// positions. It returns false and changes nothing if these do not give the state. The caller keeps ownership of the
	// snapshot. With a nil snapshot it is Rewind.
	Restore(s *Snapshot, target int) bool
	// Free drops all state and sets the offset to 0.
	Free()

	begin()                                      // see Sequence.Begin
	commit(rows int)                             // see Sequence.Commit
	inPlace(rows int) (k, v *mlx.Array, ok bool) // see Sequence.InPlace
	advance(rows int)                            // see Sequence.Advance
	skip(n int)                                  // see Sequence.Skip
}

// Attention is a Layer that keeps keys and values, which [mlx.Attend] reads and writes in place.
//
// A step calls Reserve, attends over the returned storage, then calls Wrote. A reader that writes nothing uses View and
// reports it with Read: on a CPU nothing else orders the next write after it.
type Attention interface {
	Layer
	// Reserve makes room for the keys and values of rows more positions, shaped like k and v [T, heads, dim]. v is nil if
	// the values are part of the keys.
	Reserve(k, v *mlx.Array, rows int) Storage
	// Wrote stores the new version of the storage, with rows more positions.
	Wrote(s mlx.Store, rows int)
	// View returns the current storage. It is empty before the first step.
	View() Storage
	// Whole is View for readers that need all positions in one storage.
	Whole() Storage
	// Read registers an array that is computed after the storage of View has been read.
	Read(done *mlx.Array)
}

// Storage is keys and values in memory, plain or packed.
type Storage struct {
	mlx.Store
	Shared []mlx.StorePart // the first positions, if not in the store; their memory is only read
	Ring   bool            // position p is at slot p mod capacity, otherwise in order, after those of Shared
	After  []*mlx.Array    // readers of this version, which must finish before the next write
}

// Kind is the kind of state that a layer keeps. Kinds are comparable.
type Kind struct {
	form   form
	window int
	rate   int  // positions of an entry
	bits   int  // of keys and values; 0: unquantized
	exact  bool // never quantized
	other  elsewhere
}

type form uint8

const (
	none form = iota
	full
	rotating
	recurrent
	compressed
)

// The kinds.
var (
	None      = Kind{}                // no state of its own
	Full      = Kind{form: full}      // a [KV]: keys and values of all positions
	Recurrent = Kind{form: recurrent} // a [State]: of a convolution and a recurrence
)

// Rotating is a [Ring]: keys and values of the last window positions, including the newest. A window of 0 is Full.
func Rotating(window int) Kind {
	if window <= 0 {
		return Full
	}
	return Kind{form: rotating, window: window}
}

// CompressedBy is a [Compressed]: an entry for every rate positions.
func CompressedBy(rate int) Kind { return Kind{form: compressed, rate: max(rate, 1)} }

// Exact returns the kind without quantization, whatever [Packed] asks for.
func (k Kind) Exact() Kind {
	k.exact = true
	return k
}

// Packed returns the kinds with keys and values quantized to 8 or 4 bits, as in [mlx.PackRows]; 0 leaves them
// unquantized. Each position is packed once, when it is written, independently of the others. The grouping of tokens
// into steps therefore makes no difference, and a snapshot holds the same bytes. Other state is not quantized.
func Packed(kinds []Kind, bits int) []Kind {
	all := make([]Kind, len(kinds))
	for i, k := range kinds {
		if k.form != none && k.form != recurrent && !k.exact {
			k.bits = bits
		}
		all[i] = k
	}
	return all
}

// Whole reports whether a layer keeps all positions, so that it can rewind to any: a [KV] or [Compressed], packed or
// not.
func (k Kind) Whole() bool { return k.form == full || k.form == compressed }

// Rate returns the number of positions of an entry: 1 unless the layer is [Compressed].
func (k Kind) Rate() int { return max(k.rate, 1) }

// entries returns how many entries of a layer that keeps all positions are of the first n positions.
func (k Kind) entries(n int) int { return n / k.Rate() }

// new returns the empty state, or nil for None.
func (k Kind) new() Layer {
	if k.isElsewhere() {
		return &Elsewhere{of: k}
	}
	switch k.form {
	case full:
		return &KV{stored: stored{bits: k.bits, exact: k.exact}}
	case rotating:
		r := NewRing(k.window)
		r.bits, r.exact = k.bits, k.exact
		return r
	case compressed:
		return &Compressed{rate: k.rate, store: KV{stored: stored{bits: k.bits, exact: k.exact}, whole: true}}
	case recurrent:
		return &State{}
	}
	return nil
}

// Sequence is the state of one sequence of tokens.
type Sequence struct {
	Layers []Layer // nil for layers that keep nothing
}

// NewSequence returns the empty state for layers of these kinds.
func NewSequence(kinds []Kind) *Sequence {
	s := &Sequence{Layers: make([]Layer, len(kinds))}
	for i, k := range kinds {
		s.Layers[i] = k.new()
	}
	return s
}

// Expect tells the sequence that it will see n tokens. Layers that keep all positions make storage for all of them at
// once, so that it is not copied as it grows, nor again for a snapshot of what fills it.
func (s *Sequence) Expect(n int) {
	for _, l := range s.Layers {
		if c, ok := l.(*KV); ok {
			c.expect = n
		}
	}
}

// Offset returns the number of tokens that all layers have seen. It panics if layers differ: the caller stopped in the
// middle of a forward pass and must Free or Rewind.
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

// State returns the live arrays of all layers.
func (s *Sequence) State() []*mlx.Array {
	var all []*mlx.Array
	for _, l := range s.Layers {
		if l != nil {
			all = append(all, l.State()...)
		}
	}
	return all
}

// Rewind drops the tokens from target on. If a layer cannot, it frees all state and returns false, so layers never
// differ.
func (s *Sequence) Rewind(target int) bool {
	for _, l := range s.Layers {
		if l != nil && !l.Rewind(target) {
			s.Free()
			return false
		}
	}
	return true
}

// Snapshot returns the state of all layers; see [Layer].
func (s *Sequence) Snapshot(from int) Snapshots {
	all := make(Snapshots, len(s.Layers))
	for i, l := range s.Layers {
		if l != nil {
			all[i] = l.Snapshot(from)
		}
	}
	return all
}

// Restore moves all layers to target with one snapshot each; a layer without one rewinds. If a layer cannot, it frees
// all state and returns false, so layers never differ.
func (s *Sequence) Restore(snapshots Snapshots, target int) bool {
	for i, l := range s.Layers {
		if l != nil && !l.Restore(snapshots.of(i), target) {
			s.Free()
			return false
		}
	}
	return true
}

// Restored returns the bytes of restored state that the next step copies to storage.
func (s *Sequence) Restored() (n int64) {
	for _, l := range s.Layers {
		switch c := l.(type) {
		case *KV:
			n += c.restored()
		case *Compressed:
			n += c.store.restored()
		}
	}
	return n
}

// Free drops all state.
func (s *Sequence) Free() {
	for _, l := range s.Layers {
		if l != nil {
			l.Free()
		}
	}
}
