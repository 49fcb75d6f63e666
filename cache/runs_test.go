package cache_test

import (
	"testing"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/mlx/mlxtest"
)

// A conversation's turns, each restored, continued and kept as one snapshot, stay where they are: nothing is copied but
// what is short, or too many for one snapshot.
func TestRuns(t *testing.T) {
	for _, c := range []struct{ turns, size, parts, copied int }{
		{5, 300, 5, 0},
		{40, 300, 32, 600},
		{10, 30, 2, 300},
	} {
		mlxtest.Do(t, noLeak(t, func(e *mlx.Thread) {
			s := newSubject(e, cache.Full, 0)
			defer s.Free()
			var snap *cache.Snapshot
			const row = 2 * 2 * 4 * 4 // bytes of keys and values
			var most int64
			for turn := range c.turns {
				(&cache.Sequence{Layers: []cache.Layer{s.Layer}}).Expect((turn + 1) * c.size)
				s.put(count(turn*c.size, (turn+1)*c.size)...)
				e.Synchronize()
				held := e.Memory().Active
				next := s.Snapshot(0)
				if snap != nil {
					snap.Close()
				}
				snap = next
				s.Free()
				e.Synchronize()
				most = max(most, e.Memory().Active-held)
				s.Restore(snap, (turn+1)*c.size)
			}
			if spare := int64(8192); most > int64(c.copied)*row+spare {
				t.Errorf("%+v: a turn takes up to %d bytes more", c, most)
			}
			if v := s.Layer.(*cache.KV).View(); len(v.Shared) != c.parts {
				t.Errorf("%+v: %d parts", c, len(v.Shared))
			}
			s.want(t, c.turns*c.size, count(0, c.turns*c.size))
			encoded := snap.Encode()
			wantRange(t, snap, 0, c.turns*c.size)
			if got := len(encoded) - c.turns*c.size*row; got < 0 || got > 400 {
				t.Errorf("%+v: encoded to %d bytes more than its positions", c, got)
			}
			parent, child := cache.Split(snap, c.size/2)
			wantRange(t, parent, 0, c.size/2)
			wantRange(t, child, c.size/2, c.turns*c.size)
			s.Free()
			if !s.Restore(parent, c.size/2) || !s.Restore(child, c.turns*c.size) {
				t.Error("the parts were not restored")
			}
			s.want(t, c.turns*c.size, count(0, c.turns*c.size))
			parent.Close()
			child.Close()
		}))
	}
}
