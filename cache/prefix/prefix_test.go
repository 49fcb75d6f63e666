package prefix

import (
	"slices"
	"testing"
)

func TestBranch(t *testing.T) {
	each(t, 0, func(w *world) {
		first, second := join(keys(1, 6), keys(10, 13)), join(keys(1, 6), keys(20, 23))
		w.wantRun(8, 0, first, 13, 14)
		switch {
		case w.windows[1] == 3, w.recurrent(): // cannot go back to where the two part
			w.wantRun(8, 5, second, 23)
		default:
			w.wantRun(3, 0, second, 23)
		}
		w.wantRun(2, 0, join(first, []Key{13, 14, 15, 16}), 17) // what the first one said is there
		w.wantRun(3, 0, join(keys(1, 6), keys(30, 33)))         // and so is the branch
	})
}

func TestSamePromptTwice(t *testing.T) {
	each(t, 0, func(w *world) {
		w.wantRun(5, 0, keys(1, 6), 6)
		if w.windows[1] == 3 || w.recurrent() {
			w.wantRun(5, 4, keys(1, 6), 6)
		}
		w.wantRun(1, 0, keys(1, 6), 6)
	})
}

func TestConversation(t *testing.T) {
	each(t, 0, func(w *world) {
		said := keys(1, 20)
		w.run(said, 100, 101)
		for turn := range 5 {
			said = join(said, keys(100+100*turn, 102+100*turn), keys(50, 52))
			next := Key(200 + 100*turn)
			w.wantRun(2, 0, said, next, next+1)
		}
	})
}

// A user's point stays through extension, divergence and return.
func TestUserPoint(t *testing.T) {
	each(t, 0, func(w *world) {
		s := w.begin(keys(1, 9)...)
		s.eval(5)
		s.Snapshot(true)
		s.eval(8)
		s.say(9, 10)
		s.end()
		w.run(join(keys(1, 6), keys(40, 44)), 50)
		w.run(join(keys(1, 11), keys(60, 64)), 70)
		w.wantRun(3, 0, join(keys(1, 6), keys(80, 83)))
		n, matched := w.part("").root.match(keys(1, 6))
		if matched != 5 || n.end != 5 || !n.user {
			t.Errorf("the point at 5 is a node at %d, user %v", n.end, n.user)
		}
	})
}

// A point that the prefill never reached makes no node, and what a cancelled one crossed is kept.
func TestCancelledPrefill(t *testing.T) {
	each(t, 0, func(w *world) {
		s := w.begin(keys(1, 100)...)
		s.eval(40)
		s.Snapshot(true)
		s.eval(60)
		s.end()
		w.wantRun(39, 0, keys(1, 100))
		s = w.begin(keys(200, 300)...)
		s.Leave()
		s.seq.Free()
		if n, matched := w.part("").root.match(keys(200, 300)); matched != 0 || n != w.part("").root {
			t.Error("what was never evaluated is in the tree")
		}
	})
}

// Several sequences are live at once on one prefix.
func TestLiveSessions(t *testing.T) {
	each(t, 0, func(w *world) {
		system := keys(1, 50)
		s := w.begin(join(system, keys(60, 64))...)
		s.eval(49)
		s.Snapshot(true)
		s.prefill()
		var live []*talk
		for i := range 4 {
			b := w.begin(join(system, keys(100*i+100, 100*i+104))...)
			if b.Cached() != 49 {
				t.Errorf("%d keys of a live sequence's prompt are cached, want 49", b.Cached())
			}
			b.prefill()
			live = append(live, b)
		}
		s.say(70, 71)
		live[2].say(5, 6, 7)
		s.end()
		for _, b := range live {
			b.say(8, 9)
			b.end()
		}
		w.wantRun(1, 0, join(system, keys(300, 304), []Key{5, 6, 7, 8, 9, 10}))
	})
}

// Two live sequences go on from one leaf.
func TestTwoFromOneLeaf(t *testing.T) {
	each(t, 0, func(w *world) {
		w.run(keys(1, 10), 10)
		a, b := w.begin(join(keys(1, 11), keys(20, 23))...), w.begin(join(keys(1, 11), keys(30, 33))...)
		a.prefill()
		a.end()
		b.prefill()
		b.end()
		w.wantRun(1, 0, join(keys(1, 11), keys(20, 24)))
		w.wantRun(1, 0, join(keys(1, 11), keys(30, 34)))
	})
}

func TestEviction(t *testing.T) {
	each(t, 0, func(w *world) {
		system := keys(1, 40)
		w.run(system, 41)
		one := w.bytes
		w.SetBudget(4 * one)
		for i := range 12 {
			s := w.begin(join(system, keys(100*i+100, 100*i+130))...)
			s.prefill()
			s.say(7, 8)
			if w.bytes > w.budget {
				t.Errorf("%d bytes over a budget of %d", w.bytes, w.budget)
			}
			s.end()
			if n, matched := w.part("").root.match(s.keys); matched != len(s.keys) || n.end != len(s.keys) {
				t.Errorf("what was just said matches %d of %d keys", matched, len(s.keys))
			}
		}
		if w.Stats().Evicted == 0 {
			t.Error("nothing was evicted")
		}
		if e, _ := w.run(join(system, keys(9000, 9003))); e > 4 {
			t.Errorf("%d keys evaluated after a shared beginning", e)
		}
		w.SetBudget(1)
		if s := w.Stats(); s.Bytes != 0 || s.Nodes != 0 {
			t.Errorf("%d bytes in %d nodes without a budget", s.Bytes, s.Nodes)
		}
	})
}

// A session's path is not evicted, whatever it holds.
func TestEvictionSparesLivePaths(t *testing.T) {
	each(t, 1, func(w *world) {
		s := w.begin(keys(1, 50)...)
		s.eval(30)
		s.Snapshot(false)
		s.prefill()
		w.run(keys(500, 550), 1)
		if w.bytes == 0 || s.at.end != 30 {
			t.Error("the live path is gone")
		}
		s.end()
		if w.bytes != 0 {
			t.Errorf("%d bytes are left", w.bytes)
		}
	})
}

// Nodes do what the trie promises, whatever hangs on them.
func TestNodes(t *testing.T) {
	tree := New(nil, 0)
	root := tree.part("").root
	a := tree.advance(nil, root, keys(1, 6))
	if b := tree.advance(nil, root, keys(1, 9)); b != a || b.end != 8 || len(root.children) != 1 {
		t.Errorf("a leaf that nobody needs was not extended: it ends at %d", b.end)
	}
	a.user = true
	b := tree.advance(nil, root, keys(1, 12))
	if b == a || b.parent != a || b.end != 11 {
		t.Error("a marked leaf was extended in place")
	}
	c := tree.advance(nil, root, join(keys(1, 4), keys(50, 53)))
	upper := c.parent
	if upper.end != 3 || len(upper.children) != 2 || upper.user || !a.user || a.parent != upper || a.start() != 3 {
		t.Errorf("the split left a node at %d with %d children", upper.end, len(upper.children))
	}
	if n, k := root.match(join(keys(1, 4), []Key{50, 99})); n != c || k != 4 {
		t.Errorf("a partial match takes %d keys", k)
	}
	for name, fn := range map[string]func(){
		"split at 0":              func() { tree.split(a, 0) },
		"split at the end":        func() { tree.split(a, len(a.edge)) },
		"merge with two children": func() { tree.merge(upper) },
		"removal of an inner one": func() { tree.remove(upper) },
		"removal of the root":     func() { tree.remove(root) },
		"merge of the root":       func() { tree.merge(root) },
	} {
		if !panics(fn) {
			t.Errorf("%s is not refused", name)
		}
	}
	tree.remove(c)
	a.used, upper.used = 3, 9
	tree.merge(upper)
	if a.start() != 0 || !slices.Equal(a.edge, keys(1, 9)) || a.used != 9 || !a.user || root.children[0] != a ||
		b.parent != a {
		t.Errorf("the merged node is [%d, %d), used %d", a.start(), a.end, a.used)
	}
}

func panics(fn func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	fn()
	return false
}
