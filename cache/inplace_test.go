package cache

import (
	"slices"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A step finds its place where nothing has to be made, moved or joined, and then the arrays stay what they are.
func TestInPlace(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		kinds := []Kind{Full, None, Rotating(300)}
		s := NewSequence(kinds)
		defer s.Free()
		write := func(rows int) {
			x := mlx.Zeros(e, mlx.Float32, rows, 2, 4)
			for _, l := range s.Layers {
				if l == nil {
					continue
				}
				a := l.(Attention)
				a.Wrote(a.Reserve(x, x, rows).Store, rows)
			}
		}
		expect := func(when string, rows int, want bool) []*mlx.Array {
			t.Helper()
			arrays, got := s.InPlace(rows, nil)
			if got != want {
				t.Errorf("%s: a step of %d rows has its place: %v", when, rows, got)
			}
			return arrays
		}
		expect("empty", 1, false)
		write(3)
		before := expect("begun", 1, true)
		if len(before) != 4 {
			t.Errorf("%d arrays of two layers", len(before))
		}
		room := firstRoom(3, e)
		expect("as far as storage goes", room-3, true)
		expect("beyond", room-2, false)
		s.Advance(room - 3)
		if s.Offset() != room {
			t.Errorf("at %d", s.Offset())
		}
		expect("full", 1, false)
		if after, _ := s.InPlace(0, nil); !slices.Equal(after, before) {
			t.Error("arrays changed where nothing was written")
		}
		write(1)
		if after := expect("grown", 1, true); slices.Equal(after, before) {
			t.Error("storage grew and is the same")
		}

		kept := s.Layers[0].Snapshot(0)
		defer kept.Close()
		s.Rewind(0)
		if !s.Layers[0].Restore(kept, 10) {
			t.Error("not restored")
		}
		if _, _, ok := s.Layers[0].inPlace(1); ok {
			t.Error("what was restored and not joined has its place")
		}
	})
}

// A ring goes on in place past its window, and not where a step's rows need more room; a recurrent state not in a
// transaction.
func TestInPlaceOfOthers(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		r := NewRing(8)
		defer r.Free()
		x := mlx.Zeros(e, mlx.Float32, 1, 2, 4)
		for range 20 {
			r.Wrote(r.Reserve(x, x, 1).Store, 1)
		}
		for rows, want := range map[int]bool{1: true, 2: false} {
			if _, _, ok := r.inPlace(rows); ok != want {
				t.Errorf("%d rows past the window: %v", rows, ok)
			}
		}
		var c State
		if _, _, ok := c.inPlace(1); ok {
			t.Error("a state that is not there has its place")
		}
		c.Advance(mlx.Zeros(e, mlx.Float32, 3, 4), mlx.Zeros(e, mlx.Float32, 1, 2, 2), 1)
		defer c.Free()
		if _, _, ok := c.inPlace(1); !ok {
			t.Error("a state has no place")
		}
		c.begin()
		if _, _, ok := c.inPlace(1); ok {
			t.Error("a state in a transaction is written in place")
		}
		c.commit(0)
	})
}
