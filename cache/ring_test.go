package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Storage grows to the window, beyond it while steps have more rows than one, and shrinks when they have one again.
func TestRingStorage(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		const window = 600
		s := newSubject(e, cache.Rotating(window), window)
		defer s.Free()
		for _, step := range []struct {
			rows, capacity int
			ring           bool // and can be read beside others that are
		}{
			{1, 256, false}, {255, 256, false}, {1, 512, false}, {300, window, true}, {43, window, true},
			{2, window - 1 + 256, true}, {1, window - 1 + 256, true}, {2000, window - 1 + 2048, true},
			{2048, window - 1 + 2048, true}, {7, window - 1 + 256, true}, {1, window - 1 + 256, true},
			{300, window - 1 + 512, true}, {1, window, true}, {1, window, true},
		} {
			before := s.Offset()
			s.put(count(before, before+step.rows)...)
			v := s.Layer.(cache.Attention).View()
			if got := v.K.Dim(2); got != step.capacity || v.Ring != step.ring {
				t.Errorf("%d rows after %d: capacity %d, a ring: %v, want %d, %v", step.rows, before, got, v.Ring, step.capacity,
					step.ring)
			}
		}
		n := s.Offset()
		s.want(t, n, count(n-window, n))
	}))
}

// Storage that is still growing becomes a ring when it is asked to, and holds the same.
func TestRingWrap(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		s := newSubject(e, cache.Rotating(600), 600)
		defer s.Free()
		ring := s.Layer.(*cache.Ring)
		if v := ring.Wrap(); v.K != nil || v.Ring {
			t.Errorf("an empty layer gives %+v", v)
		}
		s.put(count(0, 100)...)
		if v := ring.Wrap(); !v.Ring || v.K.Dim(2) != 600 {
			t.Errorf("storage %v, a ring: %v", v.K, v.Ring)
		}
		s.want(t, 100, count(0, 100))
	}))
}

// Single rows are written in place.
func TestRingWritesInPlace(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		s := newSubject(e, cache.Rotating(64), 64)
		defer s.Free()
		s.put(count(0, 64)...)
		s.put(64)
		mlx.Eval(s.State()...)
		before := e.Memory().Active
		for i := range 100 {
			s.put(float32(65 + i))
			mlx.Eval(s.State()...)
		}
		if after := e.Memory().Active; after != before {
			t.Errorf("100 steps changed active memory from %d to %d", before, after)
		}
	})
}

func TestRingSnapshots(t *testing.T) {
	named(t, cache.Rotating(4), 4, map[string]func(t *testing.T, s *subject){
		"rewinds": func(t *testing.T, s *subject) {
			s.tokens(0, 4)
			if s.Rewind(5) || s.Rewind(-1) || !s.Rewind(4) || !s.Rewind(2) {
				t.Error("a rewind within the window")
			}
			s.want(t, 2, count(0, 2))
			s.tokens(2, 10)
			if s.Rewind(3) || s.Rewind(9) || s.Rewind(11) || !s.Rewind(10) {
				t.Error("a rewind past the window")
			}
			s.want(t, 10, count(6, 10))
			if !s.Rewind(0) {
				t.Error("no rewind to the start")
			}
			s.want(t, 0, nil)
		},
		"snapshot at 10": func(t *testing.T, s *subject) {
			s.tokens(0, 10)
			snap := s.Snapshot(7)
			defer snap.Close()
			wantRange(t, snap, 7, 10)
			s.tokens(10, 15)
			if s.Restore(snap, 9) || s.Restore(snap, 11) || s.Restore(snap, -1) {
				t.Error("restored elsewhere than to its end")
			}
			s.want(t, 15, count(11, 15))
			if !s.Restore(snap, 10) {
				t.Error("no restore")
			}
			s.want(t, 10, count(6, 10))
			s.Free()
			if !s.Restore(snap, 10) { // nothing before it is needed
				t.Error("no restore to an empty layer")
			}
			s.want(t, 10, count(6, 10))
		},
		"snapshot at 6": func(t *testing.T, s *subject) {
			s.tokens(0, 6)
			snap := s.Snapshot(0)
			defer snap.Close()
			s.tokens(6, 9)
			if !s.Restore(snap, 6) {
				t.Error("no restore")
			}
			s.put(100)
			s.want(t, 7, []float32{3, 4, 5, 100})
		},
		"snapshot within the window": func(t *testing.T, s *subject) {
			s.tokens(0, 4)
			snap := s.Snapshot(0)
			defer snap.Close()
			s.tokens(4, 20)
			if !s.Restore(snap, 3) {
				t.Error("no restore to 3")
			}
			s.want(t, 3, count(0, 3))
			if !s.Rewind(1) {
				t.Error("no rewind after it")
			}
			s.want(t, 1, count(0, 1))
			if !s.Restore(snap, 0) || s.Offset() != 0 {
				t.Error("no restore to 0")
			}
		},
		"after a longer step": func(t *testing.T, s *subject) {
			s.put(count(0, 9)...)
			s.want(t, 9, count(5, 9))
			snap := s.Snapshot(0)
			defer snap.Close()
			s.put(count(9, 600)...)
			s.tokens(600, 603)
			s.want(t, 603, count(599, 603))
			if !s.Restore(snap, 9) {
				t.Error("no restore")
			}
			s.put(20, 21)
			s.want(t, 11, []float32{7, 8, 20, 21})
		},
		"split and merge": func(t *testing.T, s *subject) {
			s.tokens(0, 6)
			whole := s.Snapshot(0)
			if parent, child := cache.Split(whole, 3); parent != nil || child != whole {
				t.Error("a window was cut")
			}
			s.tokens(6, 9)
			later := s.Snapshot(6)
			if got := cache.Merge(whole, later); got != later {
				t.Error("the child does not supersede")
			}
			if got := cache.Merge(nil, later); got != later {
				t.Error("the child alone is lost")
			}
			if cache.Merge(later, nil) != nil {
				t.Error("the parent stays without its child")
			}
		},
	})
}
