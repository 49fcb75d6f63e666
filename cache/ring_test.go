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
				t.Errorf("%d rows after %d: capacity %d, a ring: %v, want %d, %v", step.rows, before, got, v.Ring, step.capacity, step.ring)
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
