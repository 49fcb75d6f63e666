package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/cachetest"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// subject is a layer of some kind whose positions hold one number each, which a test can read back.
type subject struct {
	e      *mlx.Thread
	window int // of a ring
	cache.Layer
}

func newSubject(e *mlx.Thread, k cache.Kind, window int) *subject {
	return &subject{e, window, cache.NewSequence([]cache.Kind{k}).Layers[0]}
}

// packed is the kind in 8 bits.
func packed(k cache.Kind) cache.Kind { return cache.Packed([]cache.Kind{k}, 8)[0] }

// put adds positions that hold the values.
func (s *subject) put(values ...float32) { cachetest.Put(s.e, s.Layer, s.window, values...) }

// contents is what the layer holds.
func (s *subject) contents() []float32 { return cachetest.Contents(s.e, s.Layer, s.window) }

// reference is a layer as a list of numbers.
type reference struct {
	kind    cache.Kind
	window  int
	history []float32
}

// contents is what a subject that saw the same must hold.
func (r *reference) contents() []float32 { return cachetest.Want(r.kind, r.window, r.history) }

func (r *reference) rewind(t int) bool {
	ok := t == 0 || t == len(r.history)
	switch {
	case t < 0 || t > len(r.history):
		return false
	case r.kind.Whole():
		ok = true
	case r.kind != cache.Recurrent:
		ok = ok || len(r.history) <= r.window
	}
	if ok {
		r.history = r.history[:t:t]
	}
	return ok
}

// copied is a snapshot of it.
type copied struct {
	from    int
	history []float32
}

func (r *reference) snapshot(from int) *copied {
	from = max(from, 0)
	if len(r.history) == 0 || r.kind.Whole() && from >= len(r.history) {
		return nil
	}
	return &copied{from, r.history[:len(r.history):len(r.history)]}
}

func (r *reference) restore(s *copied, t int) bool {
	to := len(s.history)
	switch {
	case t < 0 || t > to:
		return false
	case r.kind.Whole():
		if len(r.history) < s.from {
			return false
		}
		r.history = append(r.history[:min(s.from, t):min(s.from, t)], s.history[min(s.from, t):t]...)
		return true
	case r.kind == cache.Recurrent && t != to, r.kind != cache.Recurrent && t < to && to > r.window:
		return false
	}
	r.history = s.history[:t:t]
	return true
}

// Random sequences of operations do what lists of numbers do.
func TestLayersAgainstLists(t *testing.T) {
	kinds := []struct {
		name   string
		kind   cache.Kind
		window int
	}{
		{"full", cache.Full, 0}, {"recurrent", cache.Recurrent, 0}, {"window 1", cache.Rotating(1), 1},
		{"window 4", cache.Rotating(4), 4}, {"window 300", cache.Rotating(300), 300},
		{"full in 8 bits", packed(cache.Full), 0}, {"window 4 in 8 bits", packed(cache.Rotating(4)), 4},
		{"window 300 in 8 bits", packed(cache.Rotating(300)), 300}, {"by 1", cache.CompressedBy(1), 0},
		{"by 4", cache.CompressedBy(4), 0}, {"by 100", cache.CompressedBy(100), 0},
		{"by 4 in 8 bits", packed(cache.CompressedBy(4)), 0}, {"window 4, exact", packed(cache.Rotating(4).Exact()), 4},
	}
	for _, k := range kinds {
		for seed := range uint64(12) {
			t.Run(fmt.Sprint(k.name, " ", seed), func(t *testing.T) {
				mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
					w := &walk{
						Rand: rand.New(rand.NewPCG(seed, 7)), t: t,
						subject: newSubject(e, k.kind, k.window), reference: &reference{kind: k.kind, window: k.window},
					}
					for i := range 120 {
						what := w.operate()
						if got, want := w.subject.Offset(), len(w.reference.history); got != want {
							t.Errorf("%d: after %s the offset is %d, want %d", i, what, got, want)
							break
						}
						if i%3 == 0 && !slices.Equal(w.subject.contents(), w.reference.contents()) {
							t.Errorf("%d: after %s the layer holds %v, want %v", i, what, w.subject.contents(), w.reference.contents())
							break
						}
					}
					w.finish()
				}))
			})
		}
	}
}

// walk is a random sequence of operations on a layer and on what it must be equal to.
type walk struct {
	*rand.Rand
	t         *testing.T
	subject   *subject
	reference *reference
	have      []*cache.Snapshot
	want      []*copied
	next      float32
}

func (w *walk) operate() string {
	offset := len(w.reference.history)
	target := w.IntN(offset+3) - 1
	switch op := w.IntN(16); {
	case op < 6:
		n := []int{1, 1, 1, 1, 2, 5, 9, 60, 290}[w.IntN(9)]
		values := make([]float32, n)
		for i := range values {
			w.next = float32(int(w.next+1) % 8000)
			values[i] = w.next
		}
		w.subject.put(values...)
		w.reference.history = append(w.reference.history[:offset:offset], values...)
		return fmt.Sprint("a step of ", n)
	case op < 8:
		what := fmt.Sprint("a rewind to ", target)
		w.same(what, w.subject.Rewind(target), w.reference.rewind(target))
		return what
	case op < 10:
		s, want := w.subject.Snapshot(target), w.reference.snapshot(target)
		w.same("a snapshot", s != nil, want != nil)
		if s != nil && want != nil {
			if s.From() != want.from || s.To() != offset {
				w.t.Errorf("a snapshot of [%d, %d) is [%d, %d)", want.from, offset, s.From(), s.To())
			}
			w.have, w.want = append(w.have, s), append(w.want, want)
		}
		return fmt.Sprint("a snapshot from ", target)
	case len(w.have) == 0:
		w.subject.Free()
		w.reference.history = nil
		return "a free"
	case op < 13:
		i := w.IntN(len(w.have))
		target = w.IntN(w.have[i].To()+3) - 1
		if w.IntN(2) == 0 {
			target = w.have[i].To()
		}
		what := fmt.Sprintf("a restore of [%d, %d) to %d", w.have[i].From(), w.have[i].To(), target)
		w.same(what, w.subject.Restore(w.have[i], target), w.reference.restore(w.want[i], target))
		return what
	case op == 13:
		i := w.IntN(len(w.have))
		w.have[i].Close()
		w.remove(i)
		return "a close"
	case op == 14:
		return w.split(w.IntN(len(w.have)))
	}
	return w.merge()
}

func (w *walk) split(i int) string {
	s, want := w.have[i], w.want[i]
	at := s.From() + w.IntN(s.To()-s.From()+3) - 1
	cut := w.reference.kind.Whole() && at > s.From() && at < s.To()
	parent, child := cache.Split(s, at)
	switch {
	case cut:
		w.have[i], w.want[i] = parent, &copied{want.from, want.history[:at:at]}
		w.have, w.want = append(w.have, child), append(w.want, &copied{at, want.history})
	case w.reference.kind.Whole() && at >= want.from+1:
		w.same("the whole is the parent", parent == s && child == nil, true)
	default:
		w.same("the whole is the child", parent == nil && child == s, true)
	}
	return fmt.Sprint("a split at ", at)
}

// merge joins two snapshots, of which the second follows the first where positions count.
func (w *walk) merge() string {
	for i, a := range w.have {
		for j, b := range w.have {
			if i == j || w.reference.kind.Whole() && a.To() != b.From() {
				continue
			}
			parent, child := w.want[i], w.want[j]
			if w.reference.kind.Whole() {
				child = &copied{parent.from, append(parent.history[:len(parent.history):len(parent.history)],
					child.history[b.From():]...)}
			}
			w.have[i], w.want[i] = cache.Merge(a, b), child
			w.remove(j)
			return "a merge"
		}
	}
	return "no merge"
}

func (w *walk) remove(i int) {
	w.have, w.want = slices.Delete(w.have, i, i+1), slices.Delete(w.want, i, i+1)
}

func (w *walk) same(what string, got, want bool) {
	if got != want {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// finish restores and closes all snapshots.
func (w *walk) finish() {
	for i, s := range w.have {
		if w.same("a restore", w.subject.Restore(s, s.To()), w.reference.restore(w.want[i],
			s.To())); !slices.Equal(w.subject.contents(), w.reference.contents()) {
			w.t.Errorf("after a restore the layer holds %v, want %v", w.subject.contents(), w.reference.contents())
		}
		s.Close()
	}
	w.subject.Free()
}
