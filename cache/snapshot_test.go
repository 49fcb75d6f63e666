package cache_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// count is the numbers [from, to).
func count(from, to int) []float32 {
	var list []float32
	for i := from; i < to; i++ {
		list = append(list, float32(i))
	}
	return list
}

// tokens gives a layer the numbers [from, to), a step each.
func (s *subject) tokens(from, to int) {
	for i := from; i < to; i++ {
		s.put(float32(i))
	}
}

func (s *subject) want(t *testing.T, offset int, contents []float32) {
	t.Helper()
	if got := s.Offset(); got != offset {
		t.Errorf("offset %d, want %d", got, offset)
	}
	if got := s.contents(); !slices.Equal(got, contents) {
		t.Errorf("it holds %v, want %v", got, contents)
	}
}

func wantRange(t *testing.T, s *cache.Snapshot, from, to int) {
	t.Helper()
	if s == nil {
		t.Errorf("no snapshot, want [%d, %d)", from, to)
	} else if s.From() != from || s.To() != to {
		t.Errorf("the snapshot is [%d, %d), want [%d, %d)", s.From(), s.To(), from, to)
	}
}

// named runs tests of layers of one kind.
func named(t *testing.T, kind cache.Kind, window int, tests map[string]func(t *testing.T, s *subject)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
				s := newSubject(e, kind, window)
				defer s.Free()
				test(t, s)
			}))
		})
	}
}

func TestKVSnapshots(t *testing.T) {
	named(t, cache.Full, 0, map[string]func(t *testing.T, s *subject){
		"without the positions before it": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			snap := s.Snapshot(5)
			defer snap.Close()
			wantRange(t, snap, 5, 10)
			s.Free()
			if s.Restore(snap, 10) || s.Offset() != 0 {
				t.Errorf("restored [5, 10) to an empty cache, offset %d", s.Offset())
			}
			s.tokens(20, 24)
			if s.Restore(snap, 10) || s.Restore(snap, 2) {
				t.Error("restored [5, 10) over 4 positions")
			}
			s.want(t, 4, count(20, 24))
		},
		"data survives": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			snap := s.Snapshot(0)
			defer snap.Close()
			s.Free()
			if !s.Restore(snap, 10) {
				t.Error("no restore")
			}
			s.want(t, 10, count(0, 10))
			// What goes on from there writes into storage of its own.
			s.tokens(10, 300)
			s.Rewind(0)
			s.tokens(500, 900)
			if !s.Restore(snap, 7) {
				t.Error("no second restore")
			}
			s.want(t, 7, count(0, 7))
		},
		"nothing to copy": func(t *testing.T, s *subject) {
			if s.Snapshot(0) != nil || s.Snapshot(-3) != nil {
				t.Error("a snapshot of nothing")
			}
			s.tokens(0, 3)
			if s.Snapshot(3) != nil || s.Snapshot(4) != nil {
				t.Error("a snapshot from the offset on")
			}
			snap := s.Snapshot(-3)
			defer snap.Close()
			wantRange(t, snap, 0, 3)
			if s.Restore(snap, 4) || s.Restore(snap, -1) {
				t.Error("restored past the ends")
			}
		},
		"split at 5": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			parent, child := cache.Split(s.Snapshot(0), 5)
			defer parent.Close()
			defer child.Close()
			wantRange(t, parent, 0, 5)
			wantRange(t, child, 5, 10)
			s.Free()
			if !s.Restore(parent, 5) {
				t.Error("the parent does not restore")
			}
			s.want(t, 5, count(0, 5))
			if !s.Restore(child, 10) {
				t.Error("the child does not restore")
			}
			s.want(t, 10, count(0, 10))
		},
		"split at 6 and merge": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			whole := s.Snapshot(2)
			size := whole.Size()
			parent, child := cache.Split(whole, 6)
			if parent.Size()+child.Size() != size {
				t.Errorf("parts of %d and %d bytes of %d", parent.Size(), child.Size(), size)
			}
			whole = cache.Merge(parent, child)
			defer whole.Close()
			wantRange(t, whole, 2, 10)
			if whole.Size() != size {
				t.Errorf("merged it has %d bytes, want %d", whole.Size(), size)
			}
			s.Rewind(2)
			s.tokens(40, 43)
			if !s.Restore(whole, 10) {
				t.Error("no restore")
			}
			s.want(t, 10, count(0, 10))
		},
		"split at the ends": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			snap := s.Snapshot(5)
			defer snap.Close()
			for at, wantParent := range map[int]bool{-1: false, 4: false, 5: false, 10: true, 11: true} {
				parent, child := cache.Split(snap, at)
				if (parent == snap) != wantParent || (child == snap) == wantParent {
					t.Errorf("split at %d: %v, %v", at, parent, child)
				}
			}
			if parent, child := cache.Split(nil, 5); parent != nil || child != nil {
				t.Error("a split of nothing")
			}
		},
		"merge with nothing": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			if cache.Merge(s.Snapshot(0), nil) != nil || cache.Merge(nil, s.Snapshot(5)) != nil || cache.Merge(nil, nil) != nil {
				t.Error("half of the positions are a snapshot")
			}
		},
		"a path": func(t *testing.T, s *subject) {
			s.tokens(0, 300)
			whole := s.Snapshot(0)
			var path []*cache.Snapshot
			for _, at := range []int{3, 256, 290} {
				var parent *cache.Snapshot
				parent, whole = cache.Split(whole, at)
				path = append(path, parent)
			}
			path = append(path, whole)
			walk := func(n int, target int) {
				t.Helper()
				for _, snap := range path[:n] {
					if !s.Restore(snap, min(snap.To(), target)) {
						t.Errorf("no restore of [%d, %d)", snap.From(), snap.To())
					}
				}
			}
			s.Free()
			walk(4, 300)
			s.want(t, 300, count(0, 300))
			// Back over what was restored and not yet used, and on with other tokens.
			for _, target := range []int{299, 290, 280, 256, 3, 2} {
				s.Free()
				walk(4, 300)
				if !s.Rewind(target) {
					t.Errorf("no rewind to %d", target)
				}
				s.put(-5, -6)
				s.want(t, target+2, append(count(0, target), -5, -6))
			}
			s.Free()
			walk(3, 256)
			s.Rewind(200)
			walk(2, 256)
			s.want(t, 256, count(0, 256))
			s.Free()
			walk(4, 300)
			for _, snap := range path {
				snap.Close() // what was restored is the layer's
			}
			s.want(t, 300, count(0, 300))
		},
	})
}

// A snapshot of one kind of layer means nothing to another.
func TestSnapshotOfAnotherKind(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		kinds := []cache.Kind{cache.Full, cache.Rotating(4), cache.Rotating(5), cache.Recurrent}
		for i, of := range kinds {
			s := newSubject(e, of, []int{0, 4, 5, 0}[i])
			s.put(1, 2, 3)
			snap := s.Snapshot(0)
			for _, to := range kinds {
				other := newSubject(e, to, 0)
				if got := other.Restore(snap, 3); got != (of == to) {
					t.Errorf("%v restores a snapshot of %v: %v", to, of, got)
				}
				other.Free()
			}
			snap.Close()
			s.Free()
		}
	}))
}

// Snapshots keep their own bytes in memory and nothing of the storage that they are cut from.
func TestSnapshotSize(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		x := mlx.Zeros(e, mlx.BFloat16, 1000, 8, 64)
		const row = 2 * 8 * 64 * 2 // bytes of keys and values
		seq := cache.NewSequence([]cache.Kind{cache.Full, cache.None, cache.Rotating(100)})
		e.Scope(func() {
			for _, l := range []cache.Attention{seq.Layers[0].(cache.Attention), seq.Layers[2].(cache.Attention)} {
				s := l.Reserve(x, x, 1000)
				segment := mlx.AttendSegment{Store: s.Store, Rows: 1000}
				_, stores := mlx.Attend(x, x, x, []mlx.AttendSegment{segment},
					mlx.AttendOptions{Scale: 1, Window: 100, Ring: s.Ring})
				l.Wrote(stores[0], 1000)
			}
			mlx.Eval(seq.State()...)
		})
		e.ClearCache() // what is reused may be larger than what is asked for
		held := e.Memory().Active
		snaps := seq.Snapshot(400)
		if got, want := snaps.Size(), int64((600+100)*row); got != want {
			t.Errorf("%d bytes, want %d", got, want)
		}
		cost := func(what string, want int64) {
			t.Helper()
			e.Synchronize()
			if got := e.Memory().Active - held; got < want || got > want+4096 {
				t.Errorf("%s: %d bytes are in use, want %d", what, got, want)
			}
		}
		cost("snapshots", snaps.Size())
		e.ClearCache()
		parents, children := snaps.Split(600)
		if parents.Size() != 200*row || children.Size() != (400+100)*row {
			t.Errorf("parts of %d and %d bytes", parents.Size(), children.Size())
		}
		cost("parts", 700*row)
		parents.Close()
		cost("a part", 500*row)
		children.Close()
		cost("nothing", 0)
		seq.Free()
	}))
}

func TestSnapshotIsClosedOnce(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		s := newSubject(e, cache.Full, 0)
		defer s.Free()
		s.put(1, 2, 3)
		snap, other := s.Snapshot(0), s.Snapshot(0)
		defer other.Close()
		snap.Close()
		for name, try := range map[string]func(){
			"Close":   snap.Close,
			"Restore": func() { s.Restore(snap, 3) },
			"Split":   func() { cache.Split(snap, 1) },
			"Merge":   func() { cache.Merge(snap, other) },
		} {
			func() {
				defer func() {
					if err, ok := recover().(*mlx.Error); !ok || !strings.Contains(err.Error(), "closed") {
						t.Errorf("%s of a closed snapshot: %v", name, err)
					}
				}()
				try()
			}()
		}
	}))
}

// All layers of a sequence come back together, or none.
func TestSequenceSnapshots(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		kinds := []cache.Kind{cache.Full, cache.None, cache.Rotating(4), cache.Recurrent}
		seq := cache.NewSequence(kinds)
		layers := []*subject{{e, 0, seq.Layers[0]}, {e, 4, seq.Layers[2]}, {e, 0, seq.Layers[3]}}
		put := func(from, to int) {
			for _, l := range layers {
				l.put(count(from, to)...)
			}
		}
		put(0, 6)
		early := seq.Snapshot(0)
		if early[1] != nil || len(early) != 4 || early[0] == nil || early[2] == nil || early[3] == nil {
			t.Errorf("snapshots %v", early)
		}
		put(6, 10)
		late := seq.Snapshot(6)
		put(10, 300)
		at := func(offset int) {
			t.Helper()
			if seq.Offset() != offset {
				t.Errorf("offset %d, want %d", seq.Offset(), offset)
			}
			layers[0].want(t, offset, count(0, offset))
			layers[1].want(t, offset, count(max(0, offset-4), offset))
		}
		if !seq.Restore(late, 10) {
			t.Error("no restore to 10")
		}
		at(10)
		if !seq.Restore(early, 6) {
			t.Error("no restore to 6")
		}
		at(6)
		all := early.Merge(late)
		seq.Free()
		if !seq.Restore(all, 10) {
			t.Error("no restore of what was merged")
		}
		at(10)
		parents, children := all.Split(6)
		if parents[0] == nil || parents[2] != nil || parents[3] != nil || children[0] == nil || children[2] == nil ||
			children[3] == nil {
			t.Errorf("split into %v and %v", parents, children)
		}
		if seq.Restore(children, 8) || seq.Offset() != 0 || len(seq.State()) != 0 {
			t.Errorf("restored to 8, which two layers cannot: offset %d, %d arrays", seq.Offset(), len(seq.State()))
		}
		if seq.Restore(children, 10) {
			t.Error("restored without the positions before")
		}
		if !seq.Restore(nil, 0) {
			t.Error("no rewind to the start")
		}
		parents.Close()
		children.Close()
	}))
}
