package cache

import (
	"fmt"

	"github.com/ingotml/ingot/mlx"
)

// Snapshot is a copy of one layer's state. Its arrays share no memory with the layer, and are being computed when it is
// there. Its owner closes it, once.
type Snapshot struct {
	kind     Kind
	from, to int
	arrays   []*mlx.Array // of a Full and a Rotating layer those of a pair, of a Recurrent one conv and delta
	closed   bool
}

// owning is a snapshot of the arrays that a function makes, which share memory with nothing. They are sent off before
// anything can be written in place where they read.
func owning(t *mlx.Thread, kind Kind, from, to int, arrays func() []*mlx.Array) *Snapshot {
	s := &Snapshot{kind: kind, from: from, to: to}
	t.Scope(func() { // what the arrays are made from must not live on in an outer scope
		s.arrays = arrays()
		mlx.AsyncEval(s.arrays...)
		mlx.Keep(s.arrays...)
	})
	return s
}

// joined is a snapshot of keys and values.
func joined(kind Kind, from, to int, parts ...pair) *Snapshot {
	return owning(parts[0].k.Thread(), kind, from, to, func() []*mlx.Array { return join(parts...).arrays() })
}

// From is the first position of a Full layer's snapshot. That of others is only the one that was asked for.
func (s *Snapshot) From() int { return s.from }

// To is the offset of the layer when it was copied.
func (s *Snapshot) To() int { return s.to }

// Size is the number of bytes that the snapshot keeps in memory.
func (s *Snapshot) Size() int64 {
	var n int64
	for _, a := range s.arrays {
		n += int64(a.Bytes())
	}
	return n
}

// Close gives the copy up. A second time is an error.
func (s *Snapshot) Close() {
	s.check("Close")
	s.closed = true
	mlx.Free(s.arrays...)
	s.arrays = nil
}

func (s *Snapshot) check(op string) {
	if s.closed {
		panic(&mlx.Error{Message: fmt.Sprintf("%s: the snapshot [%d, %d) was closed", op, s.from, s.to)})
	}
}

// pair is the keys and values of attention.
func (s *Snapshot) pair() pair {
	p := pair{k: s.arrays[0]}
	if len(s.arrays) > 1 {
		p.v = s.arrays[1]
	}
	return p
}

// Split makes two snapshots of one: what it holds before position at, and the rest. Only keys and values of all positions
// can be cut; else, and where one part would be empty, the whole is on one side and the other is nil. It takes s over.
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
	n, all := at-s.from, s.pair()
	all.scope(func() {
		parent = joined(s.kind, s.from, at, all.slots(0, n))
		child = joined(s.kind, at, s.to, all.slots(n, s.to-s.from))
	})
	s.Close()
	return parent, child
}

// Merge makes one snapshot of two that follow each other; either may be nil. Keys and values of all positions are joined,
// and are lost where one part is; of other state the child's is the later one, which holds all that counts. It takes both
// over.
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
		panic(&mlx.Error{Message: fmt.Sprintf("Merge: [%d, %d) does not follow [%d, %d)", child.from, child.to, parent.from, parent.to)})
	}
	s := joined(parent.kind, parent.from, child.to, parent.pair(), child.pair())
	parent.Close()
	child.Close()
	return s
}

// Snapshots has one of each layer, nil where a layer has none.
type Snapshots []*Snapshot

func (s Snapshots) of(layer int) *Snapshot {
	if layer >= len(s) {
		return nil
	}
	return s[layer]
}

// Split is [Split] of each.
func (s Snapshots) Split(at int) (parents, children Snapshots) {
	parents, children = make(Snapshots, len(s)), make(Snapshots, len(s))
	for i := range s {
		parents[i], children[i] = Split(s[i], at)
	}
	return parents, children
}

// Merge is [Merge] of each with its child.
func (s Snapshots) Merge(children Snapshots) Snapshots {
	all := make(Snapshots, max(len(s), len(children)))
	for i := range all {
		all[i] = Merge(s.of(i), children.of(i))
	}
	return all
}

// Size is the sum of the sizes.
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
