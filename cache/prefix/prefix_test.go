package prefix

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

// environment is a model's kinds of layers.
type environment struct {
	name    string
	kinds   []cache.Kind
	windows []int
}

var environments = []environment{
	{"full", []cache.Kind{cache.Full, cache.None, cache.Full}, []int{0, 0, 0}},
	{"full and window 32", []cache.Kind{cache.Rotating(32), cache.Full}, []int{32, 0}},
	{"full and window 3", []cache.Kind{cache.Full, cache.Rotating(3)}, []int{0, 3}},
	{"full and recurrent", []cache.Kind{cache.Full, cache.Recurrent, cache.None}, []int{0, 0, 0}},
	{"full in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.None, cache.Full}, 8), []int{0, 0, 0}},
	{"full and window 3 in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.Rotating(3)}, 8), []int{0, 3}},
	{"full and recurrent in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.Recurrent}, 8), []int{0, 0}},
}

// world is a tree with what a test did to it.
type world struct {
	environment
	*Tree
	t *testing.T
	e *mlx.Thread
}

// each runs a test in all environments.
func each(t *testing.T, budget int64, fn func(w *world)) {
	t.Helper()
	for _, env := range environments {
		t.Run(env.name, func(t *testing.T) { in(t, env, budget, fn) })
	}
}

func in(t *testing.T, env environment, budget int64, fn func(w *world)) {
	t.Helper()
	mlxtest.Do(t, func(e *mlx.Thread) {
		before := e.Memory().Arrays
		e.Scope(func() {
			w := &world{env, New(env.kinds, budget), t, e}
			fn(w)
			w.check()
			w.Close()
		})
		if after := e.Memory().Arrays; after != before {
			t.Errorf("%d arrays live, %d before", after, before)
		}
	})
}

// recurrent reports whether the environment has layers that go nowhere but to where they were copied.
func (w *world) recurrent() bool { return slices.Contains(w.environment.kinds, cache.Recurrent) }

// talk is a live sequence.
type talk struct {
	w    *world
	seq  *cache.Sequence
	keys []Key
	*Session
}

// begin starts a sequence with a prompt and checks what was restored.
func (w *world) begin(prompt ...Key) *talk {
	w.t.Helper()
	s := &talk{w: w, seq: cache.NewSequence(w.environment.kinds), keys: slices.Clone(prompt)}
	s.Session = w.Begin(s.seq, prompt)
	s.same()
	if s.Cached() >= len(prompt) {
		w.t.Errorf("all %d keys are cached, want one left", len(prompt))
	}
	return s
}

// same compares the layers with what a sequence without a tree would hold.
func (s *talk) same() {
	s.w.t.Helper()
	o := s.seq.Offset()
	history := make([]float32, o)
	for i, k := range s.keys[:o] {
		history[i] = float32(k)
	}
	for i, l := range s.seq.Layers {
		if l == nil {
			continue
		}
		if got, want := cachetest.Contents(s.w.e, l, s.w.windows[i]),
			cachetest.Want(s.w.environment.kinds[i], s.w.windows[i], history); !slices.Equal(got, want) {
			s.w.t.Errorf("layer %d holds %v at %d, want %v", i, got, o, want)
		}
	}
}

// eval evaluates keys up to a position, in one step.
func (s *talk) eval(to int) {
	o := s.seq.Offset()
	if to <= o {
		return
	}
	values := make([]float32, to-o)
	for i, k := range s.keys[o:to] {
		values[i] = float32(k)
	}
	for i, l := range s.seq.Layers {
		if l != nil {
			cachetest.Put(s.w.e, l, s.w.windows[i], values...)
		}
	}
}

// prefill evaluates the prompt and stops at a branch.
func (s *talk) prefill() {
	if b := s.Branch(); b > 0 {
		s.eval(b)
		s.Snapshot(false)
	}
	s.eval(len(s.keys))
}

// say evaluates further keys, one by one.
func (s *talk) say(keys ...Key) {
	for _, k := range keys {
		s.keys = append(s.keys, k)
		s.eval(len(s.keys))
	}
}

func (s *talk) end() {
	s.w.t.Helper()
	s.same()
	s.Session.Close(s.keys)
	s.seq.Free()
	s.w.check()
}

// run is a whole request: it gives how many keys were evaluated, and the branch point.
func (w *world) run(prompt []Key, said ...Key) (evaluated, branch int) {
	w.t.Helper()
	s := w.begin(prompt...)
	s.prefill()
	evaluated, branch = len(prompt)-s.Cached(), s.Branch()
	s.say(said...)
	s.end()
	return evaluated, branch
}

func (w *world) wantRun(evaluated, branch int, prompt []Key, said ...Key) {
	w.t.Helper()
	if e, b := w.run(prompt, said...); e != evaluated || b != branch {
		w.t.Errorf("%v: %d keys evaluated with a branch at %d, want %d and %d", prompt, e, b, evaluated, branch)
	}
}

// check holds the tree's invariants.
func (w *world) check() {
	w.t.Helper()
	var bytes int64
	seen := map[*cache.Snapshot]bool{}
	w.each(func(n *node) {
		bytes += w.size(n)
		if n == w.root {
			if n.end != 0 || len(n.edge) != 0 || n.held() {
				w.t.Error("the root holds something")
			}
		} else if len(n.edge) == 0 || n.start() != n.parent.end {
			w.t.Errorf("a node of %d keys ends at %d, its parent at %d", len(n.edge), n.end, n.parent.end)
		}
		first := map[Key]bool{}
		for _, c := range n.children {
			if c.parent != n {
				w.t.Error("a child has another parent")
			}
			if first[c.edge[0]] {
				w.t.Errorf("two siblings begin with %d", c.edge[0])
			}
			first[c.edge[0]] = true
		}
		for _, s := range n.snapshots {
			if s != nil && s.To() != n.end {
				w.t.Errorf("a snapshot ends at %d, its node at %d", s.To(), n.end)
			}
			if s != nil && (s.Size() == 0 || seen[s]) {
				w.t.Error("a snapshot in the tree was closed, or is there twice")
			}
			seen[s] = true
		}
	})
	if bytes != w.bytes {
		w.t.Errorf("the tree counts %d bytes and holds %d", w.bytes, bytes)
	}
	for s := range w.sessions {
		if n := s.at; n != w.root && !slices.Contains(n.parent.children, n) {
			w.t.Error("a session stands on a node that is not in the tree")
		}
	}
}

func keys(from, to int) []Key {
	var list []Key
	for i := from; i < to; i++ {
		list = append(list, Key(i))
	}
	return list
}

func join(lists ...[]Key) []Key { return slices.Concat(lists...) }

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
		n, matched := w.root.match(keys(1, 6))
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
		if n, matched := w.root.match(keys(200, 300)); matched != 0 || n != w.root {
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
			if n, matched := w.root.match(s.keys); matched != len(s.keys) || n.end != len(s.keys) {
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
	a := tree.advance(nil, tree.root, keys(1, 6))
	if b := tree.advance(nil, tree.root, keys(1, 9)); b != a || b.end != 8 || len(tree.root.children) != 1 {
		t.Errorf("a leaf that nobody needs was not extended: it ends at %d", b.end)
	}
	a.user = true
	b := tree.advance(nil, tree.root, keys(1, 12))
	if b == a || b.parent != a || b.end != 11 {
		t.Error("a marked leaf was extended in place")
	}
	c := tree.advance(nil, tree.root, join(keys(1, 4), keys(50, 53)))
	upper := c.parent
	if upper.end != 3 || len(upper.children) != 2 || upper.user || !a.user || a.parent != upper || a.start() != 3 {
		t.Errorf("the split left a node at %d with %d children", upper.end, len(upper.children))
	}
	if n, k := tree.root.match(join(keys(1, 4), []Key{50, 99})); n != c || k != 4 {
		t.Errorf("a partial match takes %d keys", k)
	}
	for name, fn := range map[string]func(){
		"split at 0":              func() { tree.split(a, 0) },
		"split at the end":        func() { tree.split(a, len(a.edge)) },
		"merge with two children": func() { tree.merge(upper) },
		"removal of an inner one": func() { tree.remove(upper) },
		"removal of the root":     func() { tree.remove(tree.root) },
		"merge of the root":       func() { tree.merge(tree.root) },
	} {
		if !panics(fn) {
			t.Errorf("%s is not refused", name)
		}
	}
	tree.remove(c)
	a.used, upper.used = 3, 9
	tree.merge(upper)
	if a.start() != 0 || !slices.Equal(a.edge, keys(1, 9)) || a.used != 9 || !a.user || tree.root.children[0] != a ||
		b.parent != a {
		t.Errorf("the merged node is [%d, %d), used %d", a.start(), a.end, a.used)
	}
}

func panics(fn func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	fn()
	return false
}

// Random requests see what they would see without a tree.
func TestRandomRequests(t *testing.T) {
	for _, env := range environments {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(env.name, " ", seed), func(t *testing.T) {
				in(t, env, []int64{0, 3000, 20000}[seed%3], func(w *world) { w.walk(rand.New(rand.NewPCG(seed, 3)), 250) })
			})
		}
	}
}

func (w *world) walk(r *rand.Rand, steps int) {
	var live []*talk
	var past [][]Key
	budget := w.budget
	for range steps {
		if budget > 0 && r.IntN(20) == 0 {
			w.SetBudget(1 + r.Int64N(budget))
			w.check()
			w.SetBudget(budget)
		}
		switch op := r.IntN(10); {
		case op < 4 && len(live) < 6:
			var prompt []Key
			if len(past) > 0 && r.IntN(4) > 0 {
				p := past[r.IntN(len(past))]
				prompt = slices.Clone(p[:r.IntN(len(p)+1)])
			}
			for range 1 + r.IntN(12) {
				prompt = append(prompt, Key(1+r.IntN(3)))
			}
			live = append(live, w.begin(prompt...))
		case len(live) == 0:
		case op < 8:
			s := live[r.IntN(len(live))]
			if o := s.seq.Offset(); o < len(s.keys) {
				s.eval(o + 1 + r.IntN(len(s.keys)-o))
				if r.IntN(3) == 0 {
					s.Snapshot(r.IntN(2) == 0)
				}
			} else {
				s.say(Key(1 + r.IntN(3)))
			}
			s.same()
		default:
			i := r.IntN(len(live))
			s := live[i]
			live = slices.Delete(live, i, i+1)
			past = append(past, s.keys)
			if r.IntN(5) == 0 {
				s.Leave()
				s.seq.Free()
			} else {
				s.end()
			}
		}
		w.check()
	}
	for _, s := range live {
		s.end()
	}
}
