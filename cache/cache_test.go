package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// rows makes keys or values [1, 2, n, 4] whose every element is its position, from start on.
func rows(e *mlx.Thread, start, n int) *mlx.Array {
	x := mlx.Reshape(mlx.Arange(e, float64(start), float64(start+n), 1, mlx.Float32), 1, 1, n, 1)
	return mlx.BroadcastTo(x, 1, 2, n, 4)
}

// positions reads back what a history holds.
func positions(t *testing.T, x *mlx.Array) []float32 {
	t.Helper()
	if x.Dim(0) != 1 || x.Dim(1) != 2 || x.Dim(3) != 4 {
		t.Fatalf("history is %v", x)
	}
	return mlx.Reshape(mlx.Slice(x, mlx.All(), mlx.At(-1), mlx.All(), mlx.At(-1)), -1).Float32s()
}

func wantPositions(t *testing.T, h cache.History, n int) {
	t.Helper()
	for name, x := range map[string]*mlx.Array{"keys": h.K, "values": h.V} {
		got := positions(t, x)
		if len(got) != n {
			t.Fatalf("%s: %d positions, want %d", name, len(got), n)
		}
		for i, p := range got {
			if p != float32(i) {
				t.Fatalf("%s: position %d holds %v", name, i, p)
			}
		}
	}
}

// Steps of all sizes, across the borders at which storage grows, evaluated together and apart.
func TestKVUpdate(t *testing.T) {
	for _, eager := range []bool{true, false} {
		mlxtest.Do(t, func(e *mlx.Thread) {
			c := &cache.KV{}
			defer c.Free()
			n := 0
			for _, step := range []int{1, 3, 250, 1, 1, 1, 300, 7, 255, 1} {
				e.Scope(func() {
					x := rows(e, n, step)
					h := c.Update(x, x)
					n += step
					if c.Offset() != n {
						t.Fatalf("offset %d, want %d", c.Offset(), n)
					}
					if eager {
						wantPositions(t, h, n)
					} else {
						mlx.AsyncEval(h.K, h.V)
					}
				})
			}
			x := rows(e, n, 1)
			wantPositions(t, c.Update(x, x), n+1)
		})
	}
}

func TestKVRewind(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		c := &cache.KV{}
		defer c.Free()
		x := rows(e, 0, 10)
		c.Update(x, x)
		for _, target := range []int{-1, 11} {
			if c.Rewind(target) || c.Offset() != 10 {
				t.Errorf("rewinding 10 to %d: offset %d", target, c.Offset())
			}
		}
		if !c.Rewind(4) || c.Offset() != 4 {
			t.Fatalf("rewinding to 4: offset %d", c.Offset())
		}
		x = rows(e, 4, 300)
		wantPositions(t, c.Update(x, x), 304)
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
		e.Scope(func() {
			x := rows(e, 0, 200)
			h := c.Update(x, x)
			mlx.Eval(h.K, h.V)
		})
		before := e.Memory().Active
		for i := range 20 {
			e.Scope(func() {
				x := rows(e, 200+i, 1)
				h := c.Update(x, x)
				mlx.Eval(h.K, h.V)
			})
		}
		if after := e.Memory().Active; after != before {
			t.Errorf("20 steps within the storage changed active memory from %d to %d", before, after)
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
			x := rows(e, 0, 5)
			for _, l := range []int{0, 2} {
				s.Layers[l].(cache.Attention).Update(x, x)
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
		x := rows(e, 0, 1)
		s.Layers[0].(cache.Attention).Update(x, x)
		defer func() {
			if recover() == nil {
				t.Error("layers at different offsets went unnoticed")
			}
		}()
		s.Offset()
	})
}
