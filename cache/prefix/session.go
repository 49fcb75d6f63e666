package prefix

import (
	"slices"
	"time"

	"github.com/ingotml/ingot/cache"
)

// Session is a live sequence's place in the tree.
type Session struct {
	t      *Tree
	of     *part
	seq    *cache.Sequence
	keys   []Key // of the prompt
	at     *node // deepest node that ends where the sequence has been
	cached int
	branch int
	closed bool
}

// Begin restores an empty sequence to the longest prefix of keys that its layers support, but leaves at least one key
// to evaluate. Only entries of the owner and of [Public] are used, and the session stores entries of the owner. End it
// with Close or Leave.
func (t *Tree) Begin(owner string, seq *cache.Sequence, keys []Key) *Session {
	return t.BeginWithin(owner, seq, keys, len(keys))
}

// BeginWithin is Begin for a prompt of which at most some keys may be restored.
func (t *Tree) BeginWithin(owner string, seq *cache.Sequence, keys []Key, most int) *Session {
	s := &Session{t: t, of: t.part(owner), seq: seq, keys: slices.Clone(keys)}
	if t.log != nil {
		t.log.Began(s, seq, keys, most)
	}
	most = min(most, max(len(keys)-1, 0))
	s.of.use(time.Now())
	t.fetch(s.of, keys[:most], 0)
	last, matched := s.of.root.match(keys)
	if matched > most {
		last, matched = s.of.root.match(keys[:most])
	}
	path := last.path()
	s.cached = t.restore(seq, path, matched)
	s.at = s.of.root
	for _, n := range path {
		if n.end <= s.cached {
			s.at = n
		}
	}
	matched = max(matched, s.restorePublic(keys[:most]))
	if s.cached < matched {
		s.branch = matched
	}
	t.sessions[s] = true
	if s.cached > s.at.end && !t.splittable() {
		// Inside an edge, state that cannot be split is copied now, while it is available.
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

// restorePublic restores the sequence to the state of a public entry that reaches farther than the owner's. It returns
// how many keys public entries match.
func (s *Session) restorePublic(keys []Key) (matched int) {
	t, public := s.t, s.t.part(Public)
	if s.of == public {
		return 0
	}
	t.fetch(public, keys, s.cached)
	if _, reached := t.reach(public, keys); reached <= s.cached {
		return 0
	}
	last, matched := public.root.match(keys)
	s.cached = t.restore(s.seq, last.path(), matched)
	public.use(time.Now())
	t.touch(last)
	return matched
}

// restore brings all layers to one offset, at most target, and returns it. If layers differ in the offsets they can
// restore, all use the lowest.
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

// restoreLayer brings one layer as far as possible, at most to target, and returns its offset.
func restoreLayer(l cache.Layer, kind cache.Kind, i int, path []*node, target int) int {
	of := func(n *node) *cache.Snapshot {
		if i >= len(n.snapshots) {
			return nil
		}
		return n.snapshots[i]
	}
	if l.Offset() == target {
		return target // restored in an earlier round
	}
	l.Free()
	if kind.Whole() {
		for _, n := range path { // each holds the positions of its own edge
			if n.start() >= target || of(n) == nil || !l.Restore(of(n), min(n.end, target)) {
				break
			}
		}
		return l.Offset()
	}
	for _, n := range slices.Backward(path) { // each holds the whole state
		if n.start() < target && of(n) != nil && l.Restore(of(n), min(n.end, target)) {
			break
		}
	}
	return l.Offset()
}

// Continue gives the session another prompt, which begins with all keys that its sequence has seen.
func (s *Session) Continue(keys []Key) {
	if s.t.log != nil {
		s.t.log.Continued(s, keys)
	}
	s.of.use(time.Now())
	s.keys, s.cached, s.branch = slices.Clone(keys), s.seq.Offset(), 0
	s.t.stats.Lookups++
	s.t.stats.Hits++
	s.t.stats.Keys += int64(len(keys))
	s.t.stats.Cached += int64(s.cached)
	s.t.touch(s.at)
}

// Owner returns whose entries the session stores.
func (s *Session) Owner() string { return s.of.owner }

// Cached returns how many keys of the prompt need no evaluation.
func (s *Session) Cached() int { return s.cached }

// Branch returns the position where the prompt diverges from the tree if no layer could be restored there, else 0. A
// snapshot there serves the next prompt that diverges at it.
func (s *Session) Branch() int { return s.branch }

// Snapshot stores the sequence's current state, inside its prompt. user marks a point chosen on purpose: it is neither
// merged nor extended in place.
func (s *Session) Snapshot(user bool) {
	o := s.seq.Offset()
	if s.closed || o <= 0 || o > len(s.keys) || s.at.end > o {
		return
	}
	if s.t.log != nil {
		s.t.log.Snapshotted(s, user)
	}
	s.keep(s.keys[s.at.end:o], user)
}

// keep moves the session's end over keys and stores the sequence's state there.
func (s *Session) keep(keys []Key, user bool) {
	s.at = s.t.advance(s, s.at, keys)
	s.t.attach(s.at, s.seq)
	s.at.user = s.at.user || user
	s.t.evict()
}

// Store stores the state at the sequence's end, for other sessions, and keeps the session. keys cover at least what the
// caches have seen; keys past the sequence's offset are ignored.
func (s *Session) Store(keys []Key) {
	if o := s.seq.Offset(); !s.closed && o > 0 && o <= len(keys) && o >= s.at.end {
		if s.t.log != nil {
			s.t.log.Stored(s, keys[:o])
		}
		s.keep(keys[s.at.end:o], false)
		s.t.touch(s.at)
	}
}

// Close stores the state at the sequence's end and ends the session; keys are those of [Session.Store].
func (s *Session) Close(keys []Key) {
	s.Store(keys)
	s.Leave()
}

// Leave ends the session without storing anything more.
func (s *Session) Leave() {
	if s.closed {
		return
	}
	s.closed = true
	if s.t.log != nil {
		s.t.log.Left(s)
	}
	delete(s.t.sessions, s)
	s.t.evict()
}
