package prefix

import (
	"testing"
	"time"

	"github.com/ingotml/ingot/cache"
)

// A pinned prompt outlives later ones that are not pinned, until its time is over.
func TestPin(t *testing.T) {
	for _, c := range []struct {
		name  string
		until time.Duration
		want  int
	}{{"pinned", time.Hour, 5}, {"expired", -time.Hour, 0}} {
		t.Run(c.name, func(t *testing.T) {
			each(t, 4*gib, func(w *world) {
				w.weigh(func(*cache.Snapshot) int64 { return gib })
				s := w.begin(keys(1, 6)...)
				s.prefill()
				s.Store(s.keys)
				s.Pin(5, time.Now().Add(c.until))
				s.Leave()
				s.seq.Free()
				for i := range 8 {
					w.run(keys(100*i+100, 100*i+106), Key(7))
				}
				if w.Stats().Evicted == 0 {
					t.Error("nothing was evicted")
				}
				s = w.begin(keys(1, 7)...)
				if s.Cached() != c.want {
					t.Errorf("%d keys are cached, want %d", s.Cached(), c.want)
				}
				s.end()
			})
		})
	}
}

// Pins of more than half the budget protect nothing.
func TestPinShare(t *testing.T) {
	each(t, 4*gib, func(w *world) {
		w.weigh(func(*cache.Snapshot) int64 { return gib })
		for i := range 4 {
			s := w.begin(keys(100*i+100, 100*i+106)...)
			s.prefill()
			s.Store(s.keys)
			s.Pin(6, time.Now().Add(time.Hour))
			s.Leave()
			s.seq.Free()
		}
		w.run(keys(1, 6), 7)
		if s := w.begin(join(keys(1, 6), keys(7, 9))...); s.Cached() == 0 {
			t.Error("a prompt that is not pinned was evicted before the oldest pinned one")
		} else {
			s.end()
		}
	})
}

// What a split divides stays pinned.
func TestPinSplit(t *testing.T) {
	in(t, environments[0], 0, func(w *world) {
		s := w.begin(keys(1, 9)...)
		s.prefill()
		s.Store(s.keys)
		until := time.Now().Add(time.Hour)
		s.Pin(8, until)
		s.Leave()
		s.seq.Free()
		w.run(join(keys(1, 5), keys(20, 24)), 30)
		n, matched := w.part("").root.match(keys(1, 5))
		if matched != 4 || !n.pinned.Equal(until) {
			t.Errorf("the node at %d is pinned until %v", matched, n.pinned)
		}
		for _, c := range n.children {
			if pinned := !c.pinned.IsZero(); pinned != (c.edge[0] == 5) {
				t.Errorf("the child with edge %v: pinned %v", c.edge, pinned)
			}
		}
	})
}
