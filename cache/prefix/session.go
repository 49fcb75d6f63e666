package prefix

import (
	"slices"

	"github.com/ingotml/ingot/cache"
)

// Session is a live sequence's place in the tree.
type Session struct {
	t      *Tree
	seq    *cache.Sequence
	keys   []Key // of the prompt
	at     *node // the deepest one that ends where the sequence has been
	cached int
	branch int
	closed bool
}

// Begin brings an empty sequence to the end of the longest prefix of keys that its layers can be restored to, but leaves at least
// one key to evaluate. End the session with Close or Leave.
func (t *Tree) Begin(seq *cache.Sequence, keys []Key) *Session {
	s := &Session{t: t, seq: seq, keys: slices.Clone(keys)}
	t.fetch(keys[:max(0, len(keys)-1)])
	last, matched := t.root.match(keys)
	if matched == len(keys) && matched > 0 {
		last, matched = t.root.match(keys[:matched-1])
	}
	path := last.path()
	s.cached = t.restore(seq, path, matched)
	if s.cached < matched {
		s.branch = matched
	}
	s.at = t.root
	for _, n := range path {
		if n.end <= s.cached {
			s.at = n
		}
	}
	t.sessions[s] = true
	if s.cached > s.at.end && slices.ContainsFunc(t.kinds, func(k cache.Kind) bool { return !k.Whole() && k != cache.None }) {
		// Inside an edge: what cannot be split there is copied while it is at hand.
		s.keep(keys[s.at.end:s.cached], false)
	}
	t.stats.Lookups++
	t.stats.Keys += int64(len(keys))
	t.stats.Cached += int64(s.cached)
	if s.cached > 0 {
		t.stats.Hits++
		t.touch(s.at)
	}
	t.evict()
	return s
}

// restore brings all layers to one offset, at most target, and gives it. Layers differ in where they can go: what one cannot
// reach, the others leave as well.
func (t *Tree) restore(seq *cache.Sequence, path []*node, target int) int {
	for target > 0 {
		reached := target
		for i, l := range seq.Layers {
			if l == nil {
				continue
			}
			if reached = min(reached, restoreLayer(l, t.kinds[i], i, path, reached)); reached == 0 {
				break
			}
		}
		aligned := !slices.ContainsFunc(seq.Layers, func(l cache.Layer) bool { return l != nil && l.Offset() != reached })
		if aligned {
			return reached
		}
		target = reached
	}
	seq.Free()
	return 0
}

// restoreLayer brings one layer as far as it can go, at most to target, and gives its offset.
func restoreLayer(l cache.Layer, kind cache.Kind, i int, path []*node, target int) int {
	of := func(n *node) *cache.Snapshot {
		if i >= len(n.snapshots) {
			return nil
		}
		return n.snapshots[i]
	}
	if l.Offset() == target {
		return target // by an earlier round
	}
	l.Free()
	if kind.Whole() {
		for _, n := range path { // each holds its own edge's positions
			if n.start() >= target || of(n) == nil || !l.Restore(of(n), min(n.end, target)) {
				break
			}
		}
		return l.Offset()
	}
	for _, n := range slices.Backward(path) { // each holds all that counts
		if n.start() < target && of(n) != nil && l.Restore(of(n), min(n.end, target)) {
			break
		}
	}
	return l.Offset()
}

// Cached is how many keys of the prompt need no evaluation.
func (s *Session) Cached() int { return s.cached }

// Branch is a position of the prompt where it parts from what the tree knows and no layer could be restored, 0 where there is
// none: a snapshot there serves the next one that parts here.
func (s *Session) Branch() int { return s.branch }

// Snapshot keeps the state of the sequence where it stands now, in its prompt. A user's mark says that the point is worth more than
// one that fell there by chance: it is neither merged nor extended in place.
func (s *Session) Snapshot(user bool) {
	o := s.seq.Offset()
	if s.closed || o <= 0 || o > len(s.keys) || s.at.end > o {
		return
	}
	s.keep(s.keys[s.at.end:o], user)
}

// keep moves the frontier over keys and leaves the sequence's state there.
func (s *Session) keep(keys []Key, user bool) {
	s.at = s.t.advance(s, s.at, keys)
	s.t.attach(s.at, s.seq)
	s.at.user = s.at.user || user
	s.t.evict()
}

// Close keeps the state at the sequence's end and ends the session. keys are all that the caches have seen, at least: what is past the
// sequence's offset does not count.
func (s *Session) Close(keys []Key) {
	if s.closed {
		return
	}
	if o := s.seq.Offset(); o > 0 && o <= len(keys) && o >= s.at.end {
		s.keep(keys[s.at.end:o], false)
		s.t.touch(s.at)
	}
	s.Leave()
}

// Leave ends the session and keeps nothing more of it.
func (s *Session) Leave() {
	if s.closed {
		return
	}
	s.closed = true
	delete(s.t.sessions, s)
	s.t.evict()
}
