package cache_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A layer on another rank can do what that layer can, under random operations, and estimates its sizes.
func TestElsewhere(t *testing.T) {
	for _, k := range []struct {
		name   string
		kind   cache.Kind
		window int
	}{
		{"full", cache.Full, 0}, {"window 4", cache.Rotating(4), 4}, {"window 300", cache.Rotating(300), 300},
		{"recurrent", cache.Recurrent, 0}, {"by 4", cache.CompressedBy(4), 0}, {"by 100", cache.CompressedBy(100), 0},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(k.name, " ", seed), func(t *testing.T) {
				mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
					kinds := []cache.Kind{k.kind, k.kind.Elsewhere(16, 4)}
					w := &pairWalk{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, window: k.window, e: e,
						seq: cache.NewSequence(kinds)}
					defer w.seq.Free()
					for range 120 {
						w.operate()
						w.seq.Offset() // panics if they differ
					}
					for _, s := range w.held {
						s.Close()
					}
				}))
			})
		}
	}
}

// pairWalk does the same to a layer and to its stand-in.
type pairWalk struct {
	*rand.Rand
	t      *testing.T
	e      *mlx.Thread
	window int
	seq    *cache.Sequence
	held   []cache.Snapshots
}

func (w *pairWalk) same(what string, do func(l cache.Layer, i int) any) {
	if here, there := do(w.seq.Layers[0], 0), do(w.seq.Layers[1], 1); here != there {
		w.t.Errorf("%s: %v, elsewhere %v", what, here, there)
	}
}

func (w *pairWalk) operate() {
	target := w.IntN(w.seq.Offset()+3) - 1
	switch op := w.IntN(12); {
	case op < 4:
		w.put([]int{1, 2, 5, 70}[w.IntN(4)])
	case op == 4:
		w.seq.Begin()
		w.put(1 + w.IntN(4))
		w.same("a snapshot in a transaction", func(l cache.Layer, _ int) any { return l.Snapshot(0) == nil })
		w.seq.Commit(w.IntN(6) - 1)
	case op == 5:
		w.same("CanRewind", func(l cache.Layer, _ int) any { return l.CanRewind(target) })
		w.same("Rewind", func(l cache.Layer, _ int) any { return l.Rewind(target) })
	case op < 8:
		all := w.seq.Snapshot(target)
		w.held = append(w.held, all)
		w.compare("a snapshot", all)
	case op == 8 && len(w.held) > 0:
		i := w.IntN(len(w.held))
		parent, child := w.held[i].Split(target)
		w.compare("the first part", parent)
		w.compare("the second part", child)
		w.held[i] = parent.Merge(child)
		w.compare("both parts", w.held[i])
	case op < 11 && len(w.held) > 0:
		s := w.held[w.IntN(len(w.held))]
		if s[0] != nil && w.IntN(2) == 0 {
			target = s[0].To()
		}
		w.same("a restore", func(l cache.Layer, i int) any { return l.Restore(s[i], target) })
	case op == 11:
		w.seq.Free()
	}
}

// put adds rows to both.
func (w *pairWalk) put(n int) {
	values := make([]float32, n)
	(&subject{w.e, w.window, w.seq.Layers[0]}).put(values...)
	w.seq.AdvanceElsewhere(n)
}

// compare compares snapshots of the two.
func (w *pairWalk) compare(what string, all cache.Snapshots) {
	here, there := all[0], all[1]
	if (here == nil) != (there == nil) {
		w.t.Errorf("%s: %v, elsewhere %v", what, here, there)
		return
	}
	if here == nil {
		return
	}
	if here.From() != there.From() || here.To() != there.To() {
		w.t.Errorf("%s: [%d, %d), elsewhere [%d, %d)", what, here.From(), here.To(), there.From(), there.To())
	}
	_, isState := w.seq.Layers[0].(*cache.State)
	if !isState && here.Size() != there.Size() {
		w.t.Errorf("%s: %d bytes, elsewhere %d", what, here.Size(), there.Size())
	}
}

// The shape of a sequence counts the layers of other ranks.
func TestShapeElsewhere(t *testing.T) {
	for _, k := range []cache.Kind{cache.Full, cache.Rotating(300), cache.CompressedBy(4), cache.Recurrent} {
		mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
			elements := int64(16) // 2 heads of 4 channels, keys and values
			if k == cache.Recurrent {
				elements = 3*5 + 2*2*3 // those of cachetest
			}
			seq := cache.NewSequence([]cache.Kind{k, k.Elsewhere(elements, 4)})
			defer seq.Free()
			(&subject{e, 300, seq.Layers[0]}).put(0, 0, 0, 0, 0)
			seq.AdvanceElsewhere(5)
			alone := cache.NewSequence([]cache.Kind{k})
			defer alone.Free()
			(&subject{e, 300, alone.Layers[0]}).put(0, 0, 0, 0, 0)
			for _, tokens := range []int{1, 5000} {
				if got, want := seq.Shape().Bytes(tokens, 1), 2*alone.Shape().Bytes(tokens, 1); got != want {
					t.Errorf("%+v: %d bytes for %d tokens, want %d", k, got, tokens, want)
				}
			}
		}))
	}
}
