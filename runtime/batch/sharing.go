package batch

import (
	"slices"

	"github.com/ingotml/ingot/cache/prefix"
)

// minShared is the fewest positions that a request waits for, or copies from, another one. Evaluating fewer costs less
// than ending the other request's chunk early.
const minShared = 32

// overlap is the beginning that a request's prompt has in common with another request's tokens.
type overlap struct {
	with *generation
	keys int
}

// findOverlaps records the owner's running requests with which g shares more of its prompt than its session restored.
func (b *batcher) findOverlaps(g *generation) {
	g.overlaps = nil
	if _, scores := g.unscored(); scores || g.cached.session == nil {
		return
	}
	usable := g.cached.keys[:len(g.tokens)-1] // at least one position is left to evaluate
	for _, r := range b.running {
		if r == g || r.cached.session == nil || r.cached.owner != g.cached.owner {
			continue
		}
		if n := prefix.Common(usable, r.cached.keys); n >= g.cached.session.Cached()+b.minShared {
			g.overlaps = append(g.overlaps, overlap{r, n})
		}
	}
}

// copyOverlap restores what g shares with a running request that has already evaluated it. Only layers that keep all
// positions can be copied at an earlier one; others are at snapshots, which the session has found. It runs on the
// engine's thread.
func (g *generation) copyOverlap(minShared int) {
	if g.cached.session == nil || g.prefixes.needsSnapshots {
		return
	}
	best, source := g.cached.session.Cached()+minShared, (*generation)(nil)
	for _, o := range g.overlaps {
		if n := min(o.keys, o.with.seq.Offset()); n >= best {
			best, source = n+1, o.with
		}
	}
	if source != nil {
		source.cached.session.Store(source.cached.keys)
		g.restartSession()
	}
}

// restartSession looks the prompt of a request up again that has evaluated nothing yet. It runs on the engine's thread.
func (g *generation) restartSession() {
	g.cached.leave()
	g.freeSequence()
	g.startSession()
}

// leader returns the request whose prefill g waits for, and the position at which the wait ends: the prompt in prefill
// before g in the batch with which g shares most. It returns nil if there is none, or if g has begun its own prefill.
func (b *batcher) leader(g *generation) (leader *generation, end int) {
	session := g.cached.session
	if session == nil || !g.prefilling() || g.seq.Offset() != session.Cached() {
		return nil, 0
	}
	ahead := b.running[:slices.Index(b.running, g)] // so no two requests wait for each other
	for _, o := range g.overlaps {
		r := o.with
		if o.keys > end && o.keys >= session.Cached()+b.minShared && slices.Contains(ahead, r) &&
			r.cached.session != nil && r.prefilling() && r.seq.Offset() < o.keys {
			leader, end = r, o.keys
		}
	}
	return leader, end
}

// followLeaders decides which prompts wait because another one evaluates their beginning, and makes the leaders take a
// snapshot where the common part ends. Prompts whose wait is over restore that snapshot.
func (b *batcher) followLeaders() {
	for _, g := range slices.Clone(b.running) {
		leader, end := b.leader(g)
		if leader != nil {
			leader.cached.addSnapshot(end)
		}
		over := g.leader != nil && leader == nil
		if g.leader = leader; !over {
			continue
		}
		if err := b.do(func() error { g.restartSession(); return nil }); err != nil {
			b.finish(g, err)
		}
	}
}

// addSnapshot adds a position at which prefill takes a snapshot.
func (c *cachedState) addSnapshot(position int) {
	if i, found := slices.BinarySearch(c.snapshots, position); !found {
		c.snapshots = slices.Insert(c.snapshots, i, position)
	}
}
