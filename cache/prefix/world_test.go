package prefix

import (
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
	{"by 4 and window 3", []cache.Kind{cache.CompressedBy(4), cache.Rotating(3).Exact()}, []int{0, 3}},
	{"full in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.None, cache.Full}, 8), []int{0, 0, 0}},
	{"full and window 3 in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.Rotating(3)}, 8), []int{0, 3}},
	{"full and recurrent in 8 bits", cache.Packed([]cache.Kind{cache.Full, cache.Recurrent}, 8), []int{0, 0}},
}

// world is a tree with what a test did to it.
type world struct {
	environment
	*Tree
	t     *testing.T
	e     *mlx.Thread
	owner string // of the next sessions
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
			w := &world{environment: env, Tree: New(env.kinds, budget), t: t, e: e}
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
	s.Session = w.Begin(w.owner, s.seq, prompt)
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
	of := map[*part]int64{}
	seen := map[*cache.Snapshot]bool{}
	w.each(func(n *node) {
		bytes += w.size(n)
		of[n.of] += w.size(n)
		if n.parent == nil {
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
		for i, s := range n.snapshots {
			if s != nil && s.To() != n.end {
				w.t.Errorf("a snapshot ends at %d, its node at %d", s.To(), n.end)
			}
			// A compressed layer may have no entry in an edge.
			rate := w.Tree.kinds[i].Rate()
			empty := rate > 1 && s != nil && s.From()/rate == s.To()/rate
			if s != nil && ((s.Size() == 0) != empty || seen[s]) {
				w.t.Error("a snapshot in the tree was closed, or is there twice")
			}
			seen[s] = true
		}
	})
	if bytes != w.bytes {
		w.t.Errorf("the tree counts %d bytes and holds %d", w.bytes, bytes)
	}
	for _, p := range w.parts {
		if of[p] != p.bytes {
			w.t.Errorf("%q is said to have %d bytes and has %d", p.owner, p.bytes, of[p])
		}
	}
	for s := range w.sessions {
		if n := s.at; n.parent != nil && !slices.Contains(n.parent.children, n) {
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
