package prefix

import (
	"fmt"
	"testing"
	"time"

	"github.com/ingotml/ingot/cache"
)

// as runs a request of an owner.
func (w *world) as(owner string, prompt []Key, said ...Key) (evaluated, branch int) {
	w.t.Helper()
	defer func(before string) { w.owner = before }(w.owner)
	w.owner = owner
	return w.run(prompt, said...)
}

func (w *world) wantAs(owner string, evaluated int, prompt []Key, said ...Key) {
	w.t.Helper()
	if e, _ := w.as(owner, prompt, said...); e != evaluated {
		w.t.Errorf("%q evaluates %d keys of %d, want %d", owner, e, len(prompt), evaluated)
	}
}

// An owner's prompt finds nothing of another owner, however much of it is the same, nor an entry of a live session.
func TestOwners(t *testing.T) {
	each(t, 0, func(w *world) {
		prompt := keys(1, 60)
		more := join(prompt, []Key{100, 101, 102})
		w.wantAs("a", 59, prompt, 100)
		live := w.begin(join(prompt, keys(70, 90))...)
		live.prefill()
		live.Snapshot(true)
		for _, other := range []string{"b", "a2", "A", "*a"} {
			w.wantAs(other, len(more), more)
		}
		live.end()
		w.wantAs("b", 1, join(more, []Key{103})) // its own stays
		w.wantAs("a", 2, more)
		w.wantAs(Public, len(more), more)
	})
}

// Public entries serve all owners, as far as these have none that reach farther. What owners add to them is theirs.
func TestPublic(t *testing.T) {
	each(t, 0, func(w *world) {
		begin := keys(1, 41)
		w.wantAs(Public, 40, begin)
		for i, owner := range []string{"", "a", "b"} {
			own := join(begin, keys(100*i+100, 100*i+120))
			w.wantAs(owner, 20, own, 7)
			w.wantAs(owner, 1, join(own, []Key{7, 8}))
			w.wantAs("c", 20, own[:60:60])
		}
		w.wantAs(Public, 1, join(begin, []Key{9}))
	})
}

// The same on disk: a process finds what an owner has left there for this owner only, and public entries for all.
func TestOwnersOnDisk(t *testing.T) {
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) {
			o := DiskOptions{Dir: t.TempDir()}
			prompt, public := keys(1, 60), keys(300, 340)
			life(t, env, 0, o, func(w *world) {
				w.wantAs("a", 59, prompt, 100, 101)
				w.wantAs(Public, 40, public, 7)
			})
			life(t, env, 0, o, func(w *world) { w.wantAs("b", 62, join(prompt, []Key{100, 101, 102})) })
			life(t, env, 0, o, func(w *world) {
				w.wantAs("a", 1, join(prompt, []Key{100, 101, 102}))
				w.wantAs("b", 1, join(public, []Key{7, 8}))
				w.wantAs("", 1, join(public, []Key{7, 8}))
			})
			life(t, env, 0, o, func(w *world) { w.wantAs(Public, 62, join(prompt, []Key{100, 101, 102})) })
		})
	}
}

// A conversation of one owner outlives any number of prompts of another one, pinned or not, until its owner has been
// away for a while.
func TestFlood(t *testing.T) {
	for _, pinned := range []bool{false, true} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("pinned %v, away %v", pinned, away), func(t *testing.T) {
				each(t, 8*gib, func(w *world) {
					w.weigh(func(*cache.Snapshot) int64 { return gib })
					for i := range 2 {
						w.as("a", keys(1000*i+1, 1000*i+20), 50)
					}
					if away {
						w.part("a").until = time.Now().Add(-time.Second)
					}
					for i := range 40 {
						w.owner = "flood"
						s := w.begin(keys(100*i+3000, 100*i+3020)...)
						s.prefill()
						s.Store(s.keys)
						if pinned {
							s.Pin(len(s.keys), time.Now().Add(time.Hour))
						}
						s.Leave()
						s.seq.Free()
						w.check()
					}
					if w.bytes > 8*gib || w.Stats().Evicted < 30 {
						t.Errorf("%d GiB, %d evicted", w.bytes/gib, w.Stats().Evicted)
					}
					w.owner = "a"
					for i := range 2 {
						s := w.begin(join(keys(1000*i+1, 1000*i+20), []Key{50, 51})...)
						if cached := s.Cached() > 0; cached == away {
							t.Errorf("conversation %d is cached: %v", i, cached)
						}
						s.Leave()
						s.seq.Free()
					}
				})
			})
		}
	}
}

// Without other owners an owner has all of the budget.
func TestLonely(t *testing.T) {
	each(t, 8*gib, func(w *world) {
		w.weigh(func(*cache.Snapshot) int64 { return gib })
		for i := range 20 {
			w.as("a", keys(100*i+100, 100*i+120))
		}
		if w.bytes <= 6*gib || w.bytes > 8*gib {
			t.Errorf("%d GiB", w.bytes/gib)
		}
	})
}
