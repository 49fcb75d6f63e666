package prefix

import (
	"cmp"
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/mlx"
)

// Tree is the prefix cache of one model. The engine's thread owns it.
type Tree struct {
	kinds    []cache.Kind
	budget   int64
	parts    []*part // in the order of their first sessions
	bytes    int64
	clock    uint64
	sessions map[*Session]bool

	stats  Stats
	sized  func(cache.Snapshots) int64 // for tests: the size that snapshots count with
	disk   *Disk                       // nil without a second tier
	thread *mlx.Thread                 // loads from disk

	log     Log    // nil: none
	follows bool   // evicts only what Evict says
	nodes   uint64 // made so far
}

// Stats has counters since the tree was made, and its current size.
type Stats struct {
	Bytes  int64 `json:"bytes"`  // of snapshots
	Budget int64 `json:"budget"` // 0: no limit
	Nodes  int   `json:"nodes"`

	Lookups int64 `json:"lookups"`
	Hits    int64 `json:"hits"`        // lookups with a non-empty match
	Keys    int64 `json:"keys"`        // of all lookups
	Cached  int64 `json:"cached_keys"` // restored
	Evicted int64 `json:"evicted"`     // nodes
}

// New returns an empty tree for sequences with these kinds of layers. budget limits the bytes of snapshots; 0 is no
// limit. Nodes used by live sessions may exceed it.
func New(kinds []cache.Kind, budget int64) *Tree {
	return &Tree{kinds: slices.Clone(kinds), budget: budget, sessions: map[*Session]bool{}}
}

// SetDisk sets a second tier for evicted entries and for those left when the tree closes. The caller closes it, after
// the tree.
func (t *Tree) SetDisk(thread *mlx.Thread, d *Disk) { t.thread, t.disk = thread, d }

// keys returns all keys up to a node's end.
func (n *node) keys() []Key {
	var keys []Key
	for _, p := range n.path() {
		keys = append(keys, p.edge...)
	}
	return keys
}

// spill writes a node to the second tier, if there is one. wait lets it block while that tier catches up.
func (t *Tree) spill(n *node, wait bool) {
	if t.disk != nil && n.held() {
		t.disk.save(n, n.keys(), wait)
	}
}

// spillAll writes all nodes, most recently used first, each after its ancestors, because the process may be killed
// meanwhile.
func (t *Tree) spillAll() {
	if t.disk == nil {
		return
	}
	var all []*node
	t.each(func(n *node) { all = append(all, n) })
	slices.SortStableFunc(all, func(a, b *node) int { return cmp.Compare(b.used, a.used) })
	done := map[*node]bool{}
	for _, n := range all {
		for _, p := range n.path() {
			if !done[p] {
				done[p] = true
				t.spill(p, true)
			}
		}
	}
}

// SetBudget changes the budget and evicts accordingly.
func (t *Tree) SetBudget(budget int64) {
	t.budget = budget
	t.evict()
}

// Stats returns the tree's counters.
func (t *Tree) Stats() Stats {
	s := t.stats
	s.Bytes, s.Budget = t.bytes, t.budget
	t.each(func(n *node) {
		if n.parent != nil {
			s.Nodes++
		}
	})
	return s
}

// Close frees all snapshots. Live sessions store nothing more.
func (t *Tree) Close() {
	for s := range t.sessions {
		s.closed = true
	}
	t.sessions = map[*Session]bool{}
	t.spillAll()
	t.each(t.drop)
	t.parts = nil
}

func (t *Tree) each(fn func(*node)) {
	var todo []*node
	for _, p := range t.parts {
		todo = append(todo, p.root)
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], n.children...)
		fn(n)
	}
}

// touch records that a session began or ended at a node, not that it passed through.
func (t *Tree) touch(n *node) {
	t.clock++
	n.used = t.clock
}

// stoodOn reports whether a session other than s is at a node.
func (t *Tree) stoodOn(n *node, s *Session) bool {
	for other := range t.sessions {
		if other != s && other.at == n {
			return true
		}
	}
	return false
}

// attach adds missing snapshots to a node, from a sequence at its end.
func (t *Tree) attach(n *node, seq *cache.Sequence) {
	before := t.size(n)
	if n.snapshots == nil {
		n.snapshots = make(cache.Snapshots, len(t.kinds))
	}
	for i, l := range seq.Layers {
		if l != nil && n.snapshots[i] == nil {
			n.snapshots[i] = l.Snapshot(n.start())
		}
	}
	t.grow(n, t.size(n)-before)
}

// evict keeps the budget. Candidates are all nodes but the roots, those on a session's path and those with several
// children. The first in [Tree.order] goes, of these the least recently used one, then the one with the farthest end,
// then the largest. A leaf is removed; a node with a single child is merged with it, which frees windows and recurrent
// state. A user's mark protects from neither.
func (t *Tree) evict() {
	if t.budget <= 0 || t.follows {
		return
	}
	for t.bytes > t.budget {
		live := map[*node]bool{}
		for s := range t.sessions {
			for n := s.at; n != nil; n = n.parent {
				live[n] = true
			}
		}
		var oldest *node
		order := t.order(time.Now())
		t.each(func(n *node) {
			if live[n] || n.parent == nil || len(n.children) > 1 {
				return
			}
			if oldest == nil || cmp.Or(cmp.Compare(order(n), order(oldest)), t.older(n, oldest)) < 0 {
				oldest = n
			}
		})
		if oldest == nil {
			return
		}
		if t.log != nil {
			t.log.Evicted(oldest.id)
		}
		t.drain(oldest)
	}
}

// drain evicts a node.
func (t *Tree) drain(n *node) {
	t.stats.Evicted++
	t.spill(n, false)
	if len(n.children) == 0 {
		t.remove(n)
	} else {
		t.merge(n)
	}
}

func (t *Tree) older(a, b *node) int {
	return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(b.end, a.end), cmp.Compare(t.size(b), t.size(a)))
}

// size returns the bytes of a node's snapshots.
func (t *Tree) size(n *node) int64 {
	if t.sized != nil {
		return t.sized(n.snapshots)
	}
	return n.snapshots.Size()
}
