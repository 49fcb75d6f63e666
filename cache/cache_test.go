package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// noLeak is fn with a check that no array outlives it.
func noLeak(t *testing.T, fn func(e *mlx.Thread)) func(e *mlx.Thread) {
	return func(e *mlx.Thread) {
		before := e.Memory().Arrays
		e.Scope(func() { fn(e) })
		if after := e.Memory().Arrays; after != before {
			t.Errorf("%d arrays live, %d before", after, before)
		}
	}
}

// rows makes keys or values [n, 2, 4] whose every element is its position, from start on.
func rows(e *mlx.Thread, start, n int) *mlx.Array {
	x := mlx.Reshape(mlx.Arange(e, float64(start), float64(start+n), 1, mlx.Float32), n, 1, 1)
	return mlx.Contiguous(mlx.BroadcastTo(x, n, 2, 4))
}

// step gives a cache n more rows that hold their positions, and lets queries of zero, which see all keys alike, attend.
func step(e *mlx.Thread, c cache.Attention, n int) *mlx.Array {
	x, q := rows(e, c.Offset(), n), mlx.Zeros(e, mlx.Float32, n, 2, 4)
	s := c.Reserve(x, x, n)
	segment := mlx.AttendSegment{Store: s.Store, Shared: s.Shared, Rows: n, Position: c.Offset()}
	out, stores := mlx.Attend(q, x, x, []mlx.AttendSegment{segment},
		mlx.AttendOptions{Scale: 1, Ring: s.Ring, After: s.After})
	c.Wrote(stores[0], n)
	return out
}

func wantPositions(t *testing.T, c cache.Attention, n int) {
	t.Helper()
	if c.Offset() != n {
		t.Fatalf("offset %d, want %d", c.Offset(), n)
	}
	s := c.Whole()
	for name, x := range map[string]*mlx.Array{"keys": s.K, "values": s.V} {
		if x.Dim(0) != 1 || x.Dim(1) != 2 || x.Dim(2) < n || x.Dim(3) != 4 {
			t.Fatalf("%s: storage is %v", name, x)
		}
		live := mlx.Slice(x, mlx.All(), mlx.At(-1), mlx.Range(0, n), mlx.At(-1))
		for i, p := range mlx.Reshape(live, -1).Float32s() {
			if p != float32(i) {
				t.Fatalf("%s: position %d holds %v", name, i, p)
			}
		}
	}
}

// Steps of all sizes, across the borders at which storage grows, evaluated together and apart.
func TestKVSteps(t *testing.T) {
	for _, eager := range []bool{true, false} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			c := &cache.KV{}
			defer c.Free()
			n := 0
			for _, rows := range []int{1, 3, 250, 1, 1, 1, 300, 7, 255, 1} {
				e.Scope(func() {
					out := step(e, c, rows)
					n += rows
					if eager {
						wantPositions(t, c, n)
					} else {
						mlx.AsyncEval(out)
					}
				})
			}
			out := step(e, c, 1)
			wantPositions(t, c, n+1)
			// The average of all positions.
			if got, want := out.Float32s()[0], float32(n)/2; got < want-1e-3 || got > want+1e-3 {
				t.Errorf("the last row sees an average of %v, want %v", got, want)
			}
		})
	}
}

func TestKVRewind(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		c := &cache.KV{}
		defer c.Free()
		step(e, c, 10)
		for _, target := range []int{-1, 11} {
			if c.Rewind(target) || c.Offset() != 10 {
				t.Errorf("rewinding 10 to %d: offset %d", target, c.Offset())
			}
		}
		if !c.Rewind(4) || c.Offset() != 4 {
			t.Fatalf("rewinding to 4: offset %d", c.Offset())
		}
		step(e, c, 300)
		wantPositions(t, c, 304)
		if !c.Rewind(304) || !c.Rewind(0) {
			t.Error("rewinding to the offset and to 0 must work")
		}
	})
}

// Writing in place keeps the memory of a step's keys and values, not that of every version.
func TestKVWritesInPlace(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		c := &cache.KV{}
		defer c.Free()
		e.Scope(func() { mlx.Eval(step(e, c, 200)) })
		mlx.Eval(c.State()...)
		before := e.Memory().Active
		for range 20 {
			e.Scope(func() { mlx.Eval(step(e, c, 1)) })
		}
		if after := e.Memory().Active; after != before {
			t.Errorf("20 steps within the storage changed active memory from %d to %d", before, after)
		}
	})
}

// A reader that is evaluated after a rewind and another write still sees what was there when it was made.
func TestKVReadersComeFirst(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		live := e.Memory().Arrays
		c := &cache.KV{}
		step(e, c, 10)
		s := c.View()
		segment := mlx.AttendSegment{Store: s.Store, Rows: 1, Position: 9, Seen: 10}
		out, read := mlx.AttendStored(mlx.Zeros(e, mlx.Float32, 1, 2, 4), []mlx.AttendSegment{segment},
			mlx.AttendOptions{Scale: 1})
		c.Read(read)
		c.Rewind(0)
		x := mlx.Full(e, 100, mlx.Float32, 10, 2, 4)
		s = c.Reserve(x, x, 10)
		_, stores := mlx.Attend(x, x, x, []mlx.AttendSegment{{Store: s.Store, Rows: 10}},
			mlx.AttendOptions{Scale: 1, After: s.After})
		c.Wrote(stores[0], 10)
		mlx.Eval(c.State()...)
		if got := out.Float32s()[0]; got != 4.5 {
			t.Errorf("the reader saw an average of %v, want 4.5", got)
		}
		c.Free()
		if got := e.Memory().Arrays; got < live {
			t.Errorf("%d arrays live, %d before", got, live)
		}
	})
}

func TestSequence(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		live := e.Memory().Arrays
		s := cache.NewSequence([]cache.Kind{cache.Full, cache.None, cache.Full})
		if s.Layers[1] != nil || s.Offset() != 0 || len(s.State()) != 0 {
			t.Fatalf("a new sequence: %+v", s)
		}
		e.Scope(func() {
			for _, l := range []int{0, 2} {
				step(e, s.Layers[l].(cache.Attention), 5)
			}
			mlx.Eval(s.State()...)
		})
		if s.Offset() != 5 || len(s.State()) != 4 {
			t.Errorf("offset %d, %d arrays", s.Offset(), len(s.State()))
		}
		if !s.Rewind(2) || s.Offset() != 2 {
			t.Errorf("rewound to %d, want 2", s.Offset())
		}
		if s.Rewind(3) || s.Offset() != 0 {
			t.Errorf("a rewind that a layer cannot do leaves offset %d, want an empty sequence", s.Offset())
		}
		if got := e.Memory().Arrays; got != live {
			t.Errorf("%d arrays live after Free, %d before", got, live)
		}
	})
}

func TestSequenceTornApart(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		s := cache.NewSequence([]cache.Kind{cache.Full, cache.Full})
		defer s.Free()
		step(e, s.Layers[0].(cache.Attention), 1)
		defer func() {
			if recover() == nil {
				t.Error("layers at different offsets went unnoticed")
			}
		}()
		s.Offset()
	})
}
