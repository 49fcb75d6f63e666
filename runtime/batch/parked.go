package batch

import (
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
)

// parked is the state of the last request that ended, if no other one was running. A request that continues it, as the
// turns of a conversation do, takes it over, and nothing is copied. Any other request makes it go to the prefix cache
// first, and so does a model that becomes idle: it never takes memory beside the state of running requests.
type parked struct {
	seq    *cache.Sequence
	cached cachedState
}

// park keeps the state of an ended request, and reports whether it did. It runs on the engine's thread.
func (p *prefixes) park(g *generation) bool {
	if p == nil || p.closed || g.cached.session == nil {
		return false
	}
	p.unpark()
	p.parked = &parked{g.seq, g.cached}
	g.seq, g.cached.session = cache.NewSequence(p.kinds), nil
	return true
}

// unpark hands parked state to the prefix cache. It runs on the engine's thread.
func (p *prefixes) unpark() {
	if p != nil && p.parked != nil {
		p.parked.cached.store()
		p.ranks.Free(p.parked.seq)
		p.parked.seq.Free()
		p.parked = nil
	}
}

// takeOver gives a request the parked state if its owner's prompt begins with all of it, and else hands it to the
// prefix cache. It runs on the engine's thread.
func (p *prefixes) takeOver(g *generation) bool {
	old := p.parked
	if old == nil {
		return false
	}
	keys, n := g.cached.keys[:len(g.tokens)], old.seq.Offset()
	if g.cached.owner != old.cached.owner || n == 0 || n >= len(keys) || n > len(old.cached.keys) ||
		prefix.Common(keys, old.cached.keys[:n]) < n {
		p.unpark()
		return false
	}
	g.freeSequence()
	g.seq, g.cached.session, p.parked = old.seq, old.cached.session, nil
	old.cached.pin(g.cached.session)
	g.cached.session.Continue(keys)
	return true
}
