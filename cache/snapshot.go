package cache

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/mlx"
)

// Snapshot is the state of one layer at an offset. Nothing writes to its arrays, which may still be computing. Layers
// that restored it may read them, also after it is closed. The owner closes it, once.
type Snapshot struct {
	kind     Kind
	from, to int
	// runs are the keys and values of a layer that keeps all positions, arrays those of a Ring, or conv and delta of a
	// Recurrent layer. A Compressed layer without entries has none, nor has a layer on another rank.
	runs   []slots
	arrays []*mlx.Array
	closed bool
}

// owned returns the arrays that a function makes, which the caller frees. Their evaluation starts before anything can
// overwrite their inputs.
func owned(t *mlx.Thread, arrays func() []*mlx.Array) (list []*mlx.Array) {
	t.Scope(func() { // the arrays' inputs must not live on in an outer scope
		list = arrays()
		mlx.AsyncEval(list...)
		mlx.Keep(list...)
	})
	return list
}

// isMost reports whether slots fill their arrays, so that a snapshot keeps the arrays rather than a copy. An eighth of
// their number may be spare. A short sequence may have up to roomMultiple spare slots, if it uses at least twice as
// many: a copy would cost more time than its memory is worth.
func (s slots) isMost() bool {
	n := s.len()
	return s.k.Dim(2)-n <= max(n/8, min(n/2, roomMultiple))
}

// From returns the first position of the snapshot of a layer that keeps all positions. For others it is only the
// requested one.
func (s *Snapshot) From() int { return s.from }

// To returns the layer's offset at the time of the copy.
func (s *Snapshot) To() int { return s.to }

// Size returns the bytes that the snapshot keeps in memory, here or on another rank.
func (s *Snapshot) Size() int64 {
	n := s.elsewhere()
	for _, a := range s.all() {
		n += int64(a.Bytes())
	}
	return n
}

// Close frees the copy. Closing twice is an error.
func (s *Snapshot) Close() {
	s.check("Close")
	s.closed = true
	mlx.Free(s.all()...)
	s.runs, s.arrays = nil, nil
}

// all returns the handles of all arrays.
func (s *Snapshot) all() []*mlx.Array {
	list := slices.Clone(s.arrays)
	for _, r := range s.runs {
		list = append(list, r.arrays()...)
	}
	return list
}

func (s *Snapshot) check(op string) {
	if s.closed {
		panic(&mlx.Error{Message: fmt.Sprintf("%s: the snapshot [%d, %d) was closed", op, s.from, s.to)})
	}
}

// Split splits a snapshot at position at. Only that of a layer that keeps all positions can be cut; otherwise, and if
// one part would be empty, the whole is on one side and the other is nil. It takes ownership of s.
func Split(s *Snapshot, at int) (parent, child *Snapshot) {
	switch {
	case s == nil:
		return nil, nil
	case !s.kind.Whole() || at <= s.from:
		return nil, s
	case at >= s.to:
		return s, nil
	}
	s.check("Split")
	parent, child = &Snapshot{kind: s.kind, from: s.from, to: at}, &Snapshot{kind: s.kind, from: at, to: s.to}
	left := s.kind.entries(at) - s.kind.entries(s.from) // entries of the parent
	var first, second []slots
	for _, r := range s.runs {
		n := min(left, r.len())
		left -= n
		if n > 0 {
			first = append(first, r.part(0, n))
		}
		if n < r.len() {
			second = append(second, r.part(n, r.len()))
		}
	}
	parent.runs, child.runs = newRuns(first, nil), newRuns(second, nil)
	s.Close()
	return parent, child
}

// Merge joins two consecutive snapshots; either may be nil. For a layer that keeps all positions it joins them, and
// returns nil if one part is missing. For other state the child's snapshot is the later one and replaces the parent's.
// It takes ownership of both.
func Merge(parent, child *Snapshot) *Snapshot {
	switch {
	case parent == nil && child == nil:
		return nil
	case parent == nil:
		if child.kind.Whole() {
			child.Close()
			return nil
		}
		return child
	case child == nil || !parent.kind.Whole():
		parent.Close()
		return child
	}
	parent.check("Merge")
	child.check("Merge")
	if child.kind != parent.kind || parent.to != child.from {
		panic(&mlx.Error{Message: fmt.Sprintf("Merge: [%d, %d) does not follow [%d, %d)", child.from, child.to, parent.from,
			parent.to)})
	}
	s := &Snapshot{kind: parent.kind, from: parent.from, to: child.to}
	s.runs = newRuns(slices.Concat(parent.runs, child.runs), nil)
	parent.Close()
	child.Close()
	return s
}

// Snapshots has one snapshot per layer, nil if a layer has none.
type Snapshots []*Snapshot

func (s Snapshots) of(layer int) *Snapshot {
	if layer >= len(s) {
		return nil
	}
	return s[layer]
}

// Split applies [Split] to each.
func (s Snapshots) Split(at int) (parents, children Snapshots) {
	parents, children = make(Snapshots, len(s)), make(Snapshots, len(s))
	for i := range s {
		parents[i], children[i] = Split(s[i], at)
	}
	return parents, children
}

// Merge applies [Merge] to each with its child.
func (s Snapshots) Merge(children Snapshots) Snapshots {
	all := make(Snapshots, max(len(s), len(children)))
	for i := range all {
		all[i] = Merge(s.of(i), children.of(i))
	}
	return all
}

// Size returns the sum of the sizes.
func (s Snapshots) Size() int64 {
	var n int64
	for _, x := range s {
		if x != nil {
			n += x.Size()
		}
	}
	return n
}

// Close closes each.
func (s Snapshots) Close() {
	for _, x := range s {
		if x != nil {
			x.Close()
		}
	}
}
