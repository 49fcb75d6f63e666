package runtime

import (
	"context"
	"slices"
)

// memory is what the state of running requests may take, and what it takes.
type memory struct {
	limit    int64 // bytes; 0 is no limit
	perToken int64 // the most that was seen of a sequence of some length; 0 before that
}

// Below this many tokens the steps in which storage grows tell more than the tokens.
const tellingTokens = 256

// measure notes what the sequences of a step take. It runs on the engine's thread.
func (m *memory) measure(plan []stepped) {
	if m.limit <= 0 {
		return // nobody asks
	}
	for _, s := range plan {
		s.g.bytes = 0
		for _, a := range s.g.seq.State() {
			s.g.bytes += int64(a.Bytes())
		}
		if n := int64(s.g.seq.Offset()); n > 0 {
			m.perToken = max(m.perToken, s.g.bytes/max(n, tellingTokens))
		}
	}
}

// used is what running requests take now.
func (b *batcher) used() (n int64) {
	for _, g := range b.running {
		n += g.bytes
	}
	return n
}

// fits reports whether there is memory for the tokens that a request has so far, and a little more.
func (b *batcher) fits(g *generation) bool {
	return b.memory.limit <= 0 || b.used()+b.memory.perToken*int64(len(g.tokens)+tellingTokens) <= b.memory.limit
}

// squeeze sends the youngest requests back to the queue while the state of all takes more than it may. They come first there, in their old order, and
// go on from what the prefix cache keeps of them, or evaluate their tokens again; their readers see a pause. The last one stays.
func (b *batcher) squeeze() {
	for b.memory.limit > 0 && len(b.running) > 1 && b.used() > b.memory.limit {
		last := len(b.running) - 1
		g := b.running[last]
		b.running = b.running[:last]
		if err := b.l.do(context.Background(), func() error { g.pause(); return nil }); err != nil {
			b.leave(g, err)
			continue
		}
		b.mu.Lock()
		b.waiting = slices.Insert(b.waiting, 0, g)
		b.mu.Unlock()
	}
}

// pause gives the sequence's memory up and leaves its state to the prefix cache. It runs on the engine's thread.
func (g *generation) pause() {
	if g.session != nil {
		g.session.Close(g.keys)
		g.session = nil
	}
	g.forget()
	g.bytes = 0
}
