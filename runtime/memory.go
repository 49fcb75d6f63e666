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

// ErrMemory reports that a single request needs more memory for its state than all requests may use.
var ErrMemory = errors.New("too little memory for the request")

// memory bounds the state of running requests: their KV caches and recurrent states. Its fields are set before the
// first step.
type memory struct {
	limit      int64 // bytes for all requests; 0: no limit
	perRequest int64 // bytes for one request: the limit with which the model was loaded
	shape      cache.Shape
	rows       int // most rows of one prompt in a step
}

// A request is admitted if there is memory for this many tokens more than it has. With less, it would soon be
// preempted.
const admissionTokens = 256

// measureState determines the memory of a sequence's state, including that of the draft, by building a step without
// evaluating it. It runs on the engine's thread.
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

// divideMemory divides the memory that is left after loading the weights. The prefix cache gets its configured size, or
// a quarter. Running requests get the rest, less a step's working set.
func (o Options) divideMemory(m mlx.Memory, working int64) (state, prefixes int64) {
	free := max(m.Budget-m.Active-m.Mapped, m.Budget/8) // the system can evict pages of mapped weights, at a cost
	state, prefixes = o.Memory, o.PrefixCache
	if prefixes < 0 {
		prefixes = free / 4
	}
	if state == 0 && m.Budget > 0 {
		state = max(free-prefixes-working, free/4)
	}
	return max(state, 0), prefixes
}

// workingSet estimates the memory of a step besides state and weights. rows is the number of rows, sampled the number
// of rows with logits. The factors allow for several activations of the hidden width, three of the widest layer, and
// float32 logits with a sorted copy.
func workingSet(f arch.Facts, blobs []blob, rows, sampled int) int64 {
	widest := f.Hidden
	for _, b := range blobs {
		if shape := b.parts[""].Shape; len(shape) == 2 && shape[0] != f.Vocab {
			widest = max(widest, shape[0])
		}
	}
	return 4 * (int64(rows)*(8*f.Hidden+3*widest) + 4*int64(sampled)*f.Vocab)
}

// assignMemory divides the memory between running requests and the prefix cache. It runs on the engine's thread, after
// the model was built.
func (l *Local) assignMemory(blobs []blob, o Options) {
	m := memory{shape: l.measureState(), rows: maxRows}
	if o.Chunk > 0 {
		m.rows = o.Chunk
	}
	var prefixes int64
	m.perRequest, prefixes = o.divideMemory(l.thread.Memory(),
		workingSet(l.config.Facts(), blobs, m.rows, l.batcher.maxRunning))
	m.limit = m.perRequest
	l.batcher.memory = m
	if prefixes > 0 {
		l.tree = prefix.New(l.kinds, prefixes)
	}
}

// tokens returns how many tokens one request can have, up to most.
func (m *memory) tokens(most int) int {
	if m.perRequest <= 0 {
		return most
	}
	return m.shape.Tokens(m.perRequest, most, m.rows)
}

// promptError returns the error for a prompt that leaves no memory for a generated token.
func (m *memory) promptError(prompt int) error {
	return fmt.Errorf("the state of a prompt of %d tokens takes %s, and a request may take %s: %w",
		prompt, megabytes(m.shape.Bytes(prompt+1, m.rows)), megabytes(m.perRequest), ErrMemory)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// need returns the size of a request's state when it has evaluated all of its tokens and the given number more.
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

// used returns the size of the running requests' state after their next token.
func (b *batcher) used() (n int64) {
	for _, g := range b.running {
		n += b.need(g, 1)
	}
	return n
}

// fits reports whether there is memory to admit a request.
func (b *batcher) fits(g *generation) bool {
	return b.memory.limit <= 0 || b.used()+b.need(g, admissionTokens) <= b.memory.limit
}

// preempt moves the youngest requests back to the front of the queue while the state of all running requests exceeds
// its limit. When they are admitted again, they resume from the prefix cache, or evaluate their tokens again; their
// callers only see a pause. The last running request is never preempted.
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

// pause frees a preempted request's sequence and hands its state to the prefix cache. It runs on the engine's thread.
func (g *generation) pause() {
	g.decodeJob.stop()
	g.decodeJob = nil
	if g.session != nil {
		g.session.Close(g.keys)
		g.session = nil
	}
	g.dropState()
}
