package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// Transactions of all sizes, between plain steps: what was kept, and only that, is there afterwards.
func TestTransactions(t *testing.T) {
	for _, k := range []struct {
		name   string
		kind   cache.Kind
		window int
	}{
		{"full", cache.Full, 0}, {"recurrent", cache.Recurrent, 0}, {"by 1", cache.CompressedBy(1), 0},
		{"by 3", cache.CompressedBy(3), 0}, {"window 1", cache.Rotating(1), 1},
		{"window 4", cache.Rotating(4), 4}, {"window 40", cache.Rotating(40), 40}, {"window 300", cache.Rotating(300), 300},
	} {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(k.name, " ", seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 3))
				mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
					s := newSubject(e, k.kind, k.window)
					defer s.Free()
					seq := &cache.Sequence{Layers: []cache.Layer{s.Layer}}
					var history []float32
					next := float32(0)
					put := func(rows int) []float32 {
						values := make([]float32, rows)
						for i := range values {
							next = float32(int(next+1) % 8000)
							values[i] = next
						}
						s.put(values...)
						return values
					}
					for range 40 {
						if r.IntN(4) == 0 { // a plain step, now and then of more rows than a window
							history = append(history, put([]int{1, 1, 3, 60, 290}[r.IntN(5)])...)
						}
						seq.Begin()
						var tried []float32
						for range r.IntN(4) {
							tried = append(tried, put([]int{1, 1, 1, 2, 5, 9}[r.IntN(6)])...)
						}
						if s.Offset() != len(history)+len(tried) {
							t.Errorf("offset %d in a transaction of %d rows after %d", s.Offset(), len(tried), len(history))
							return
						}
						rows := r.IntN(len(tried)+3) - 1
						seq.Commit(rows)
						history = append(history, tried[:min(max(rows, 0), len(tried))]...)
						seq.Commit(0) // there is none any more
						want := (&reference{k.kind, k.window, history}).contents()
						if s.Offset() != len(history) || !slices.Equal(s.contents(), want) {
							t.Errorf("%d of %d rows kept after %d: offset %d, the layer holds %v, want %v",
								rows, len(tried), len(history), s.Offset(), s.contents(), want)
							return
						}
					}
				}))
			})
		}
	}
}

// Inside a transaction nothing is copied, restored or rewound, and Free ends it.
func TestTransactionRefuses(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		for _, k := range []cache.Kind{cache.Full, cache.Rotating(4), cache.Recurrent} {
			s := newSubject(e, k, 4)
			seq := &cache.Sequence{Layers: []cache.Layer{s.Layer}}
			s.put(1, 2, 3)
			snap := s.Snapshot(0)
			seq.Begin()
			s.put(4)
			if s.Snapshot(0) != nil || s.Restore(snap, 3) || s.Rewind(0) || s.Rewind(4) || s.Offset() != 4 {
				t.Errorf("%v: a snapshot, a restore or a rewind inside a transaction; offset %d", k, s.Offset())
			}
			s.Free()
			if seq.Commit(1); s.Offset() != 0 || !s.Restore(snap, 3) {
				t.Errorf("%v: offset %d after Free", k, s.Offset())
			}
			snap.Close()
			s.Free()
		}
	}))
}

// What was taken back is not kept alive, nor what was needed for it.
func TestTransactionFrees(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		seq := cache.NewSequence([]cache.Kind{cache.Full, cache.Rotating(8), cache.Recurrent})
		layers := []*subject{{e, 0, seq.Layers[0]}, {e, 8, seq.Layers[1]}, {e, 0, seq.Layers[2]}}
		put := func(values ...float32) {
			for _, l := range layers {
				l.put(values...)
			}
		}
		put(count(0, 20)...)
		before := e.Memory().Arrays
		for keep := range 5 {
			seq.Begin()
			put(1, 2, 3)
			put(4)
			e.Scope(func() { seq.Commit(keep) })
			if after := e.Memory().Arrays; after != before {
				t.Errorf("%d rows kept: %d arrays live, %d before", keep, after, before)
			}
		}
		seq.Free()
	})
}
