package prefix

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ingotml/ingot/cache"
)

const gib = 1 << 30

// weigh sets the bytes that a node's snapshots count as.
func (w *world) weigh(of func(s *cache.Snapshot) int64) {
	w.sized = func(all cache.Snapshots) int64 {
		for _, s := range all {
			if s != nil {
				return of(s)
			}
		}
		return 0
	}
}

// at is the node that ends where keys do; nil if there is none.
func (w *world) at(keys []Key) *node {
	n, matched := w.part("").root.match(keys)
	if matched != len(keys) || n.end != len(keys) {
		return nil
	}
	return n
}

// Two branches that part twice, at different depths, hang on two parents.
func TestBranchTwice(t *testing.T) {
	each(t, 0, func(w *world) {
		base := keys(1, 21)
		w.run(base, 21)
		deep, shallow := join(base[:12], keys(40, 46)), join(base[:5], keys(50, 56))
		w.run(deep, 46)
		w.run(shallow, 56)
		for _, end := range []int{5, 12} {
			n := w.at(base[:end])
			if n == nil || len(n.children) != 2 || n.user {
				t.Errorf("no plain node with two children at %d: %+v", end, n)
			}
		}
		w.wantRun(1, 0, join(base, []Key{21, 22}))
		w.wantRun(1, 0, join(deep, []Key{46, 47}))
		w.wantRun(1, 0, join(shallow, []Key{56, 57}))
	})
}

// Split nodes that are merged again hold what they held, and serve the same.
func TestSplitMergeRoundTrip(t *testing.T) {
	each(t, 0, func(w *world) {
		prompt := keys(1, 41)
		w.run(prompt, 41)
		w.run(join(prompt, []Key{41, 42, 43}), 44) // a grandchild, where nothing is extended in place
		whole := w.at(join(prompt, []Key{41}))
		if whole == nil {
			whole = w.part("").root.children[0]
		}
		end, children, used, before := whole.end, len(whole.children), whole.used, w.bytes
		whole.user = true
		upper := w.split(whole, 17)
		w.check()
		if upper.end != 17 || upper.user || !whole.user || upper.used != used || whole.start() != 17 ||
			len(whole.children) != children {
			t.Errorf("split: [0, %d) and [%d, %d), user %v and %v", upper.end, whole.start(), whole.end, upper.user, whole.user)
		}
		whole.used = used + 5
		w.merge(upper)
		w.check()
		if whole.end != end || whole.start() != 0 || !whole.user || whole.used != used+5 || whole.parent != w.part("").root ||
			w.bytes != before {
			t.Errorf("merged: [%d, %d), user %v, used %d, %d bytes of %d", whole.start(), whole.end, whole.user, whole.used,
				w.bytes, before)
		}
		for i, s := range whole.snapshots {
			if s != nil && w.environment.kinds[i] == cache.Full && (s.From() != 0 || s.To() != end) {
				t.Errorf("layer %d has [%d, %d)", i, s.From(), s.To())
			}
		}
		w.wantRun(1, 0, join(prompt, []Key{41, 42, 43, 44, 45}))
	})
}

// A merged node's grandchildren are its child's.
func TestMergeKeepsGrandchildren(t *testing.T) {
	tree := New(nil, 0)
	a := tree.place(tree.part(""), keys(1, 4))
	b := tree.place(tree.part(""), keys(1, 8))
	c, d := tree.place(tree.part(""), keys(1, 10)), tree.place(tree.part(""), join(keys(1, 8), keys(30, 33)))
	b.user = true
	tree.merge(a)
	if !slices.Equal(b.edge, keys(1, 8)) || !b.user || len(b.children) != 2 || c.parent != b || d.parent != b ||
		c.start() != 7 || a.parent != nil {
		t.Errorf("merged: [%d, %d) with %d children", b.start(), b.end, len(b.children))
	}
}

// Five conversations on one system prompt share a budget of four snapshots.
func TestFiveConversations(t *testing.T) {
	each(t, 8*gib, func(w *world) {
		w.weigh(func(*cache.Snapshot) int64 { return 2 * gib })
		system := keys(1, 60)
		for i := range 5 {
			s := w.begin(join(system, keys(100*i+100, 100*i+120))...)
			if i == 0 {
				s.eval(len(system))
				s.Snapshot(true)
			} else if s.Cached() < len(system) {
				t.Errorf("conversation %d: %d keys of the system prompt are cached", i, s.Cached())
			}
			s.prefill()
			s.say(7, 8, 9)
			s.end()
			if w.bytes > 8*gib {
				t.Errorf("%d bytes in the tree", w.bytes)
			}
			if n := w.at(s.keys); n == nil || !w.whole(n) {
				t.Errorf("conversation %d, which has just ended, is not there whole", i)
			}
			for n := w.at(s.keys); n != nil && n != w.part("").root; n = n.parent {
				if !w.recurrent() && w.windows[1] != 3 && !n.held() {
					t.Errorf("the path in use has a gap at %d", n.end)
				}
			}
		}
		if w.Stats().Evicted == 0 {
			t.Error("nothing was evicted")
		}
		if s := w.begin(join(system, keys(900, 910))...); s.Cached() != len(system) {
			t.Errorf("%d keys of the system prompt are still cached", s.Cached())
		} else {
			s.end()
		}
	})
}

// A user's point that has lost one of two children is not merged with the other.
func TestUserPointResistsMerging(t *testing.T) {
	each(t, 8*gib, func(w *world) {
		w.weigh(func(s *cache.Snapshot) int64 {
			if s.To() == 3 {
				return gib
			}
			return 5 * gib
		})
		begin := keys(1, 4)
		for i := range 2 {
			s := w.begin(join(begin, keys(10*i+10, 10*i+16))...)
			s.eval(3)
			s.Snapshot(true)
			s.prefill()
			s.end()
		}
		n := w.at(begin)
		if n == nil || !n.user || len(n.children) != 1 || !n.held() {
			t.Errorf("the user's point is %+v", n)
		}
		if w.at(join(begin, keys(10, 16))) != nil || w.at(join(begin, keys(20, 26))) == nil {
			t.Error("of two children not the later one is left")
		}
		if w.bytes != 6*gib || w.Stats().Evicted != 1 {
			t.Errorf("%d bytes, %d evicted", w.bytes, w.Stats().Evicted)
		}
	})
}

// A user's point at 4, where conversations part, is one node that stays through extension, divergence and return.
func TestUserPointAtDivergence(t *testing.T) {
	each(t, 0, func(w *world) {
		s := w.begin(keys(1, 9)...)
		s.eval(4)
		s.Snapshot(true)
		s.prefill()
		s.say(9, 10)
		s.end()
		n := w.at(keys(1, 5))
		for i := range 3 {
			w.wantRun(4, 0, join(keys(1, 5), keys(40+10*i, 44+10*i)), 5)
		}
		w.wantRun(1, 0, join(keys(1, 11), []Key{70}))
		if n == nil || w.at(keys(1, 5)) != n || !n.user || len(n.children) != 4 {
			t.Errorf("the point at 4 is %+v", n)
		}
	})
}

// Going from branch to branch and back restores what each has.
func TestBranchSwitch(t *testing.T) {
	each(t, 0, func(w *world) {
		a, b := join(keys(1, 31), keys(100, 120)), join(keys(1, 31), keys(200, 240))
		w.run(a, 500)
		w.run(b, 600)
		a, b = join(a, []Key{500}), join(b, []Key{600})
		for turn := range 4 {
			for _, said := range []*[]Key{&a, &b} {
				*said = append(*said, Key(700+turn))
				w.wantRun(1, 0, *said, Key(800+turn)) // begin and end compare what the layers hold
				*said = append(*said, Key(800+turn))
			}
		}
	})
}

// A prompt that is cached whole is evaluated from its last key on.
func TestExactMatch(t *testing.T) {
	each(t, 0, func(w *world) {
		s := w.begin(keys(1, 31)...)
		s.eval(29)
		s.Snapshot(true)
		s.prefill()
		s.end()
		for range 3 {
			w.wantRun(1, 0, keys(1, 31))
		}
	})
}

// Prefills that are cancelled one after another, each on its own branch, leave what they crossed and nothing else.
func TestDivergentCancels(t *testing.T) {
	each(t, 0, func(w *world) {
		system := keys(1, 31)
		s := w.begin(join(system, keys(50, 60))...)
		s.eval(30)
		s.Snapshot(true)
		s.prefill()
		s.end()
		nodes := w.Stats().Nodes
		for i := range 5 {
			s := w.begin(join(system, keys(100*i+100, 100*i+180))...)
			if s.Cached() != 30 {
				t.Errorf("cancel %d: %d keys are cached", i, s.Cached())
			}
			s.eval(70)
			s.Snapshot(true)
			s.eval(80 + i)
			s.end() // before its end
			if got, want := w.Stats().Nodes, nodes+2*(i+1); got != want {
				t.Errorf("cancel %d: %d nodes, want %d", i, got, want)
			}
		}
		for i := range 5 {
			w.wantRun(110-80-i, 0, join(system, keys(100*i+100, 100*i+180)))
		}
		w.wantRun(1, 0, join(system, keys(50, 60), []Key{60}))
	})
}

// A prefill that is cancelled before any of its points makes no node for them.
func TestPointBeyondPrefill(t *testing.T) {
	each(t, 0, func(w *world) {
		s := w.begin(keys(1, 101)...)
		s.eval(20)
		s.end() // points would have been at 40 and 96
		if st := w.Stats(); st.Nodes != 1 || w.at(keys(1, 21)) == nil {
			t.Errorf("%d nodes after 20 keys", st.Nodes)
		}
		s = w.begin(keys(200, 230)...)
		s.end() // nothing was evaluated
		if st := w.Stats(); st.Nodes != 1 {
			t.Errorf("%d nodes, one of them of nothing", st.Nodes)
		}
	})
}

// Only the node that a request lands on and the one that it ends on are used; those it passes age.
func TestLastUse(t *testing.T) {
	each(t, 0, func(w *world) {
		var path []*node
		s := w.begin(keys(1, 61)...)
		for _, at := range []int{10, 20, 40} {
			s.eval(at)
			s.Snapshot(true)
			path = append(path, w.at(keys(1, at+1)))
		}
		s.end() // at 40
		w.run(keys(500, 520), 520)
		var before []uint64
		for _, n := range path {
			before = append(before, n.used)
		}
		s = w.begin(join(keys(1, 41), keys(70, 80))...)
		if s.Cached() != 40 || path[2].used <= before[2] {
			t.Errorf("landed at %d, last used %d, before %d", s.Cached(), path[2].used, before[2])
		}
		s.prefill()
		s.end()
		if end := w.at(join(keys(1, 41), keys(70, 80))); end == nil || end.used <= path[2].used {
			t.Error("the end is not the last used")
		}
		if path[0].used != before[0] || path[1].used != before[1] {
			t.Errorf("nodes that were passed: used %d and %d, before %v", path[0].used, path[1].used, before)
		}
	})
}

// Layers without state never make a node incomplete, and are passed over when nodes are joined.
func TestLayersWithoutState(t *testing.T) {
	env := environment{"mostly none", []cache.Kind{cache.None, cache.Full, cache.None, cache.Recurrent, cache.None},
		make([]int, 5)}
	in(t, env, 0, func(w *world) {
		s := w.begin(keys(1, 31)...)
		s.eval(10)
		s.Snapshot(true)
		s.prefill()
		s.end()
		upper, lower := w.at(keys(1, 11)), w.at(keys(1, 31))
		if upper == nil || lower == nil || !w.whole(upper) || !w.whole(lower) {
			t.Error("nodes with all snapshots that there can be are not whole")
			return
		}
		w.merge(upper)
		w.check()
		if !w.whole(lower) {
			t.Error("the merged node is not whole")
		}
		w.wantRun(1, 0, join(keys(1, 31), []Key{40}))
	})
	in(t, environment{"none", []cache.Kind{cache.None}, []int{0}}, 0, func(w *world) {
		for range 2 { // nothing to keep: every prompt is new
			w.wantRun(8, 0, keys(1, 9))
		}
	})
}

// A child that is on its own path's way is found, whatever its siblings hold.
func TestSiblings(t *testing.T) {
	tree := New(nil, 0)
	for i := range 30 {
		tree.place(tree.part(""), join(keys(1, 4), []Key{Key(100 + i)}, keys(50, 50+i)))
	}
	for i := range 30 {
		want := join(keys(1, 4), []Key{Key(100 + i)}, keys(50, 50+i))
		if n, matched := tree.part("").root.match(join(want, []Key{999})); matched != len(want) || n.end != len(want) {
			t.Errorf("child %d: %d keys match a node at %d", i, matched, n.end)
		}
		if _, matched := tree.part("").root.match(want[:3+i/8]); matched != 3+i/8 {
			t.Errorf("child %d: %d keys match", i, matched)
		}
	}
}

// Keys of pictures stand for their content: another picture at the same place is another branch.
func TestPictureKeys(t *testing.T) {
	cat, dog := slices.Repeat([]Key{Picture(7)}, 6), slices.Repeat([]Key{Picture(8)}, 6)
	tree := New(nil, 0)
	a := tree.place(tree.part(""), join(keys(1, 4), cat, keys(20, 23)))
	tree.place(tree.part(""), join(keys(1, 4), dog, keys(20, 23)))
	if a.parent.end != 3 || len(a.parent.children) != 2 {
		t.Errorf("two pictures part at %d", a.parent.end)
	}
	if _, matched := tree.part("").root.match(join(keys(1, 4), keys(7, 8))); matched != 3 {
		t.Errorf("a token is taken for a picture: %d keys match", matched)
	}
	if fmt.Sprint(Picture(7)) == fmt.Sprint(Tokens([]int32{7})[0]) {
		t.Error("a picture's key is a token's")
	}
}
