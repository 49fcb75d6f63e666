package cache_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// wantShared checks the number of shared parts of a cache's positions, and the capacity of its own storage.
func wantShared(t *testing.T, s *subject, parts, capacity int) {
	t.Helper()
	v := s.Layer.(*cache.KV).View()
	if len(v.Shared) != parts || v.K.Dim(2) != capacity {
		t.Errorf("%d shared parts and storage for %d positions, want %d and %d", len(v.Shared), v.K.Dim(2), parts, capacity)
	}
}

// Caches that restore a snapshot read its memory, each with storage for its own positions, and do not change it.
func TestKVShares(t *testing.T) {
	for _, kind := range []cache.Kind{cache.Full, packed(cache.Full)} {
		mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
			first := newSubject(e, kind, 0)
			first.put(count(0, 600)...)
			snap := first.Snapshot(0)
			first.Free()
			a, b, c := newSubject(e, kind, 0), newSubject(e, kind, 0), newSubject(e, kind, 0)
			defer a.Free()
			defer b.Free()
			defer c.Free()
			for s, at := range map[*subject]int{a: 600, b: 500} {
				if !s.Restore(snap, at) {
					t.Fatalf("%d positions were not restored", at)
				}
				s.put(7, 8, 9)
				wantShared(t, s, 1, 96)
			}
			c.Restore(snap, 600)
			snap.Close()
			a.want(t, 603, append(count(0, 600), 7, 8, 9))
			b.want(t, 503, append(count(0, 500), 7, 8, 9))
			c.want(t, 600, count(0, 600))

			next := a.Snapshot(550) // of shared positions and of its own
			defer next.Close()
			b.Rewind(0)
			b.put(count(0, 550)...)
			b.Restore(next, 602)
			b.want(t, 602, append(count(0, 600), 7, 8))
			wantShared(t, b, 0, 768)
		}))
	}
}

// A path of many snapshots is shared, but the kernels take a bounded number: consecutive small ones are joined.
func TestKVSharesMany(t *testing.T) {
	mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
		first, s := newSubject(e, cache.Full, 0), newSubject(e, cache.Full, 0)
		defer first.Free()
		defer s.Free()
		for i, n := range slices.Concat([]int{40, 30, 9, 8, 7}, slices.Repeat([]int{20}, 61)) {
			at := first.Offset()
			first.put(count(at, at+n)...)
			part := first.Snapshot(at)
			if !s.Restore(part, at+n) {
				t.Fatalf("part %d was not restored", i)
			}
			part.Close()
		}
		const row = 2 * 2 * 4 * 4 // bytes of keys and values
		if got := (&cache.Sequence{Layers: []cache.Layer{s.Layer}}).Restored(); got != (9+8+7)*row {
			t.Errorf("%d bytes will be copied, want those of 24 positions, %d", got, (9+8+7)*row)
		}
		s.put(1000)
		wantShared(t, s, 64, 96)
		s.want(t, 1315, append(count(0, 1314), 1000))
		for _, at := range []int{1314, 1290, 90, 75, 70, 3} { // the start of its own positions, and within and between parts
			if !s.Rewind(at) {
				t.Fatalf("cannot rewind to %d", at)
			}
			s.put(1000)
			s.want(t, at+1, append(count(0, at), 1000))
			s.Rewind(at)
		}
		wantShared(t, s, 1, 96)
		if v := s.Layer.(*cache.KV).Whole(); len(v.Shared) != 0 {
			t.Errorf("%d parts are shared where all should be in one storage", len(v.Shared))
		}
		s.want(t, 3, count(0, 3))
	}))
}

// A store that a recorded step knows is not used with other shared positions before it.
func TestKVSharesInPlace(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		s := cache.NewSequence([]cache.Kind{cache.Full})
		defer s.Free()
		l := &subject{e, 0, s.Layers[0]}
		l.put(count(0, 20)...)
		kept := l.Snapshot(0)
		defer kept.Close()
		var stores []*mlx.Array
		for _, at := range []int{20, 10} {
			s.Rewind(0)
			l.Restore(kept, at)
			if _, ok := s.InPlace(1, nil); ok {
				t.Errorf("restored to %d, a step does not have to make storage", at)
			}
			l.put(5)
			now, ok := s.InPlace(1, nil)
			if !ok || len(stores) > 0 && now[0] == stores[0] {
				t.Errorf("restored to %d, the next step writes in place: %v, or to the store of another sequence", at, ok)
			}
			stores = now
		}
	})
}

// A snapshot of most of the storage takes it over. So does the larger part when it is split; the smaller one is copied.
func TestKVFreezes(t *testing.T) {
	for _, kind := range []cache.Kind{cache.Full, packed(cache.Full)} {
		mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
			first, s := newSubject(e, kind, 0), newSubject(e, kind, 0)
			defer first.Free()
			defer s.Free()
			first.put(count(0, 250)...)
			e.Synchronize()
			held := e.Memory().Active
			snap := first.Snapshot(0)
			if more := e.Memory().Active - held; more > 4096 {
				t.Errorf("a snapshot of 250 of 256 positions takes %d bytes more", more)
			}
			first.put(1, 2, 3)
			wantShared(t, first, 1, 96)
			first.want(t, 253, append(count(0, 250), 1, 2, 3))

			decoder, b := cache.Decoder{Thread: e}, snap.Encode()
			decoded, err := decoder.Decode(kind, bytes.NewReader(b), int64(len(b)))
			if err != nil || decoded.Size() >= snap.Size() {
				t.Fatalf("%v, or it takes as much as the whole storage", err)
			}
			s.Restore(decoded, 250)
			decoded.Close()
			s.want(t, 250, count(0, 250))

			size := snap.Size()
			parent, child := cache.Split(snap, 240)
			wantRange(t, parent, 0, 240)
			wantRange(t, child, 240, 250)
			if got := parent.Size() + child.Size(); got <= size || got >= size+size/8 {
				t.Errorf("the parts take %d bytes of %d", got, size)
			}
			s.Free()
			if !s.Restore(parent, 240) || !s.Restore(child, 249) {
				t.Fatal("the parts were not restored")
			}
			s.put(9)
			s.want(t, 250, append(count(0, 249), 9))
			merged := cache.Merge(parent, child)
			s.Free()
			s.Restore(merged, 250)
			merged.Close()
			s.want(t, 250, count(0, 250))

			next := first.Snapshot(100) // of a part of the storage, and of what came later
			s.Rewind(100)
			s.Restore(next, 253)
			next.Close()
			s.want(t, 253, append(count(0, 250), 1, 2, 3))
		}))
	}
}

// A sequence that expects its positions has storage for all of them from the first step on, and a snapshot of those
// takes it over. Storage that is too small grows to what is expected.
func TestExpect(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		s := cache.NewSequence([]cache.Kind{cache.Full, cache.None, cache.Recurrent})
		defer s.Free()
		l := &subject{e, 0, s.Layers[0]}
		s.Expect(301)
		l.put(count(0, 40)...)
		wantShared(t, l, 0, 384)
		l.put(count(40, 350)...)
		wantShared(t, l, 0, 384)
		snap := l.Snapshot(0)
		defer snap.Close()
		s.Expect(1000)
		l.put(350)
		wantShared(t, l, 1, 736)
		s.Expect(2000)
		l.put(count(351, 1087)...)
		wantShared(t, l, 1, 1792)
		l.want(t, 1087, count(0, 1087))
	})
}

// A snapshot of a short sequence takes over storage of which it fills two thirds. One of less is a copy.
func TestKVFreezesShort(t *testing.T) {
	mlxtest.Do(t, func(e *mlx.Thread) {
		for n, parts := range map[int]int{63: 0, 64: 1} {
			s := newSubject(e, cache.Full, 0)
			s.put(count(0, 20)...)
			wantShared(t, s, 0, 96)
			s.put(count(20, n)...)
			s.Snapshot(0).Close()
			wantShared(t, s, parts, max(96, 256*parts))
			s.want(t, n, count(0, n))
			s.Free()
		}
	})
}
