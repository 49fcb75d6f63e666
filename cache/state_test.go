package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A layer that recurs hands its arrays from step to step, can go back to its start only, and keeps nothing when freed.
func TestState(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		c := cache.NewSequence([]cache.Kind{cache.Recurrent}).Layers[0].(*cache.State)
		if conv, delta := c.Arrays(); conv != nil || delta != nil || c.Offset() != 0 || len(c.State()) != 0 {
			t.Errorf("a new state: %v, %v at %d", conv, delta, c.Offset())
		}
		for i := range 3 {
			e.Scope(func() {
				c.Advance(mlx.Full(e, float64(i), mlx.BFloat16, 3, 5), mlx.Full(e, float64(10*i), mlx.Float32, 2, 4, 6), 2)
			})
		}
		conv, delta := c.Arrays()
		if got := conv.Float32s()[14]; got != 2 || c.Offset() != 6 {
			t.Errorf("convolution %v at %d, want 2 at 6", got, c.Offset())
		}
		if got := delta.Float32s()[47]; got != 20 {
			t.Errorf("memory %v, want 20", got)
		}
		for target, want := range map[int]bool{-1: false, 5: false, 6: true, 7: false} {
			if got := c.Rewind(target); got != want || c.Offset() != 6 {
				t.Errorf("rewind to %d: %v, offset %d", target, got, c.Offset())
			}
		}
		if !c.Rewind(0) || c.Offset() != 0 || len(c.State()) != 0 {
			t.Errorf("rewound to 0: offset %d, %d arrays", c.Offset(), len(c.State()))
		}
	}))
}

func TestStateSnapshots(t *testing.T) {
	named(t, cache.Recurrent, 0, map[string]func(t *testing.T, s *subject){
		"snapshot at 10": func(t *testing.T, s *subject) {
			s.tokens(1, 11)
			at10 := s.contents()
			snap := s.Snapshot(4)
			defer snap.Close()
			wantRange(t, snap, 4, 10)
			s.tokens(11, 16)
			at15 := s.contents()
			if s.Restore(snap, 5) || s.Restore(snap, 9) || s.Restore(snap, 11) || s.Rewind(5) {
				t.Error("restored where no state was copied")
			}
			s.want(t, 15, at15)
			if !s.Restore(snap, 10) {
				t.Error("no restore")
			}
			s.want(t, 10, at10)
			s.tokens(11, 16)
			s.want(t, 15, at15)
			s.Free()
			if s.Snapshot(0) != nil {
				t.Error("a snapshot of nothing")
			}
			if !s.Restore(snap, 10) { // nothing before it is needed
				t.Error("no restore to an empty layer")
			}
			s.want(t, 10, at10)
		},
		"split and merge": func(t *testing.T, s *subject) {
			s.tokens(0, 6)
			whole := s.Snapshot(0)
			if parent, child := cache.Split(whole, 3); parent != nil || child != whole {
				t.Error("a state was cut")
			}
			s.tokens(6, 9)
			later := s.Snapshot(6)
			if got := cache.Merge(whole, later); got != later {
				t.Error("the child does not supersede")
			}
			later.Close()
		},
	})
}
