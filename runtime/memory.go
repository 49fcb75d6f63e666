package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/cache"
	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/models"
	"github.com/ingotml/ingot/models/nn"
)

// ErrMemory says that a request alone would need more memory for its state than all requests together may have.
var ErrMemory = errors.New("too little memory for the request")

// memory is what the state of running requests takes, and may take. All of it is known before the first step.
type memory struct {
	limit      int64 // bytes; 0 is no limit
	perRequest int64 // what one may take: the limit that the model was loaded with
	shape      cache.Shape
	rows       int // most of one prompt in a step
}

// Tokens beyond those that a request has, for which there must be room to let it in: with less it would soon be sent back.
const admissionTokens = 256

// measureState finds out what a sequence's state takes, the draft's included: a step is built for that and not evaluated. It
// runs on the engine's thread.
func (l *Local) measureState() (shape cache.Shape) {
	l.thread.Scope(func() {
		seq := cache.NewSequence(l.kinds)
		defer seq.Free()
		hidden := l.model.Forward(nn.NewBatch(l.thread, nn.Part{Seq: seq, Tokens: []int32{0}}))
		shape = seq.Shape()
		if l.draft == nil || len(l.draft.Layers()) == 0 {
			return
		}
		own := cache.NewSequence(l.draft.Layers())
		defer own.Free()
		x := &models.DraftBatch{Batch: nn.NewBatch(l.thread, nn.Part{Seq: own, Tokens: []int32{0}})}
		if !models.Standalone(l.draft) {
			x.Target, x.Vectors, x.Hidden = []*cache.Sequence{seq}, l.model.Embed(x.Tokens), hidden
		}
		l.draft.Step(x)
		shape = shape.Plus(own.Shape())
	})
	return shape
}

// share divides what the engine may still take once the weights are loaded: the prefix cache gets what it is given, or a
// fourth, and running requests the rest beyond the working set of a step.
func (o Options) divideMemory(m mlx.Memory, working int64) (state, prefixes int64) {
	free := max(m.Budget-m.Active-m.Mapped, m.Budget/8) // the pages of mapped weights can go, at a price
	state, prefixes = o.Memory, o.PrefixCache
	if prefixes < 0 {
		prefixes = free / 4
	}
	if state == 0 && m.Budget > 0 {
		state = max(free-prefixes-working, free/4)
	}
	return max(state, 0), prefixes
}

// working estimates the memory of a step of so many rows, of which so many have scores, beside state and weights. An
// activation of the hidden width lives in a few forms at once, the widest one in two or three; scores are float32, and to sort
// them takes more.
func workingSet(f arch.Facts, blobs []blob, rows, sampled int) int64 {
	widest := f.Hidden
	for _, b := range blobs {
		if shape := b.parts[""].Shape; len(shape) == 2 && shape[0] != f.Vocab {
			widest = max(widest, shape[0])
		}
	}
	return 4 * (int64(rows)*(8*f.Hidden+3*widest) + 4*int64(sampled)*f.Vocab)
}

// divide gives running requests and the prefix cache their memory. It runs on the engine's thread, once the model is built.
func (l *Local) assignMemory(blobs []blob, o Options) {
	m := memory{shape: l.measureState(), rows: maxRows}
	if o.Chunk > 0 {
		m.rows = o.Chunk
	}
	var prefixes int64
	m.perRequest, prefixes = o.divideMemory(l.thread.Memory(), workingSet(l.config.Facts(), blobs, m.rows, l.batcher.maxRunning))
	m.limit = m.perRequest
	l.batcher.memory = m
	if prefixes > 0 {
		l.tree = prefix.New(l.kinds, prefixes)
	}
}

// tokens are how many one request can have, at most most.
func (m *memory) tokens(most int) int {
	if m.perRequest <= 0 {
		return most
	}
	return m.shape.Tokens(m.perRequest, most, m.rows)
}

// refuse tells of a prompt that leaves no room for a token.
func (m *memory) promptError(prompt int) error {
	return fmt.Errorf("the state of a prompt of %d tokens takes %s, and requests may take %s: %w",
		prompt, megabytes(m.shape.Bytes(prompt+1, m.rows)), megabytes(m.perRequest), ErrMemory)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// need is what a request's state takes with more tokens than it has: all of them, read or not.
func (b *batcher) need(g *generation, more int) int64 {
	rows := 1
	if g.request.Draft.Mode != DraftOff {
		rows += MaxDraft
	}
	if g.prefilling() {
		rows = b.memory.rows
	}
	return b.memory.shape.Bytes(len(g.tokens)+more, rows)
}

// used is what running requests take after their next token.
func (b *batcher) used() (n int64) {
	for _, g := range b.running {
		n += b.need(g, 1)
	}
	return n
}

// fits reports whether there is memory for a request beside those that run.
func (b *batcher) fits(g *generation) bool {
	return b.memory.limit <= 0 || b.used()+b.need(g, admissionTokens) <= b.memory.limit
}

// squeeze sends the youngest requests back to the queue while the state of all would take more than it may. They come first there, in their old
// order, and go on from what the prefix cache keeps of them, or evaluate their tokens again; their readers see a pause. The last one stays.
func (b *batcher) preempt() {
	for b.memory.limit > 0 && len(b.running) > 1 && b.used() > b.memory.limit {
		last := len(b.running) - 1
		g := b.running[last]
		b.running = b.running[:last]
		if err := b.do(func() error { b.forwards.Forget(); g.pause(); return nil }); err != nil {
			b.finish(g, err)
			continue
		}
		b.mu.Lock()
		b.waiting = slices.Insert(b.waiting, 0, g)
		b.mu.Unlock()
	}
}

// pause gives the sequence's memory up and leaves its state to the prefix cache. It runs on the engine's thread.
func (g *generation) pause() {
	g.decodeJob.stop()
	g.decodeJob = nil
	if g.session != nil {
		g.session.Close(g.keys)
		g.session = nil
	}
	g.dropState()
}
