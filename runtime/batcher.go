package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/cache/prefix"
	"github.com/ingotml/ingot/models"
)

// ErrBusy says that a model has as many requests as it takes; a later try may go through.
var ErrBusy = errors.New("too many requests are waiting")

// batcher runs the requests of a model together: each step is one forward over what all of them need next. Its goroutine lives
// while there are requests. Requests come in by add, and leave by their end, an error or their context's end, at the next step.
type batcher struct {
	l *Local

	mu       sync.Mutex
	waiting  []*generation // in order of arrival
	looping  bool
	counters batcherCounters // since the loop last looked

	running     []*generation // in order of admission; the loop's
	onThread    bool          // the loop is on the engine's thread; the loop's
	stalled     bool          // all that run wait for their pictures; the loop's
	wakeup      chan struct{} // has room for one: what idle waits for
	maxWaiting  int           // most that wait
	maxRunning  int           // most that run
	sendsAhead  bool          // the next step is sent before the last one is read
	chunk       int           // rows of prompts in a step; 0: as many as fit its time
	prefillRate prefillRate
	depths      depthController
	lastStepEnd time.Time // of the step before; zero where nothing ran
	memory      memory
	drafter     drafter
	forwards    *models.Repeater
	onStep      func([]batchItem) error // for tests: sees what a step will do, and may fail it
}

// Bounds where the options give none.
const (
	defaultQueue     = 512
	defaultSequences = 32
)

func newBatcher(l *Local, o Options) *batcher {
	b := &batcher{l: l, wakeup: make(chan struct{}, 1), maxWaiting: o.Queue, maxRunning: o.Sequences, sendsAhead: l.thread.Info().GPU, chunk: o.Chunk, drafter: l.newDrafter(o.Draft), forwards: models.NewRepeater(l.thread, l.model)}
	if b.maxWaiting <= 0 {
		b.maxWaiting = defaultQueue
	}
	if b.maxRunning <= 0 {
		b.maxRunning = defaultSequences
	}
	return b
}

// add queues a request.
func (b *batcher) add(g *generation) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) >= b.maxWaiting {
		return ErrBusy
	}
	b.waiting = append(b.waiting, g)
	if !b.looping {
		b.looping = true
		go b.loop()
	}
	b.wake()
	return nil
}

// wake has an idle loop look again.
func (b *batcher) wake() {
	select {
	case b.wakeup <- struct{}{}:
	default: // it will anyway
	}
}

// loop steps until nobody is left. It stays on the engine's thread from one step to the next, as waking that and being woken by it costs
// a small model some percent of a token, and leaves it as soon as somebody else asks for it.
func (b *batcher) loop() {
	for more := true; more; {
		err := b.l.do(context.Background(), func() error {
			b.onThread = true
			defer func() { b.onThread = false }()
			for more = b.iterate(); more && !b.stalled && !b.l.thread.Awaited() && !b.l.closing.Load(); {
				more = b.iterate()
			}
			return nil
		})
		if err != nil { // the model was closed: requests end one by one
			more = b.iterate()
		}
		if more && b.stalled {
			<-b.wakeup
		}
	}
}

// do runs fn on the engine's thread while the model is loaded.
func (b *batcher) do(fn func() error) error {
	if b.onThread {
		return b.l.thread.Within(fn)
	}
	return b.l.do(context.Background(), fn)
}

// turn lets requests come and go and runs a step. It is false once nobody is left.
func (b *batcher) iterate() bool {
	b.stalled = false
	b.endCanceled()
	b.preempt()
	b.admit()
	b.updateCounters()
	b.mu.Lock()
	if len(b.running) > 0 {
		b.counters.steps++
		b.counters.batchSizeSum += int64(len(b.running))
	}
	if len(b.running) == 0 && len(b.waiting) == 0 {
		b.looping, b.lastStepEnd = false, time.Time{}
		b.mu.Unlock()
		return false
	}
	b.mu.Unlock()
	if len(b.running) > 0 {
		b.step()
	}
	return true
}

// count keeps what others see of the requests that run. It comes before a request's end is told, for whoever looks then.
func (b *batcher) updateCounters() {
	used := b.used()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counters.running, b.counters.stateBytes = len(b.running), used
}

// admit lets waiting requests in, first come first served, as long as there is memory for them. One alone always gets in.
func (b *batcher) admit() {
	for {
		b.mu.Lock()
		var g *generation
		if len(b.waiting) > 0 && len(b.running) < b.maxRunning && (len(b.running) == 0 || b.fits(b.waiting[0])) {
			g, b.waiting = b.waiting[0], b.waiting[1:]
		}
		b.mu.Unlock()
		if g == nil {
			return
		}
		b.running = append(b.running, g)
		if err := b.do(func() error { g.startSession(); return nil }); err != nil {
			b.finish(g, err)
		}
	}
}

// retire ends requests whose context has ended.
func (b *batcher) endCanceled() {
	for _, g := range slices.Clone(b.running) {
		if err := g.ctx.Err(); err != nil {
			b.finish(g, err)
		}
	}
	b.mu.Lock()
	var gone []*generation
	b.waiting = slices.DeleteFunc(b.waiting, func(g *generation) bool {
		if g.ctx.Err() == nil {
			return false
		}
		gone = append(gone, g)
		return true
	})
	b.mu.Unlock()
	for _, g := range gone {
		b.finish(g, g.ctx.Err())
	}
}

// leave ends a request. What it has evaluated stays in the prefix cache. Without an error its last event was sent.
func (b *batcher) finish(g *generation, err error) {
	b.running = slices.DeleteFunc(b.running, func(r *generation) bool { return r == g })
	g.decodeJob.stop()
	g.decodeJob = nil
	// Also of a closed model: what it holds must go. An error here means that the engine is gone, and the memory with it.
	free := func() error { b.forwards.Forget(); g.free(); return nil }
	if b.onThread {
		_ = b.l.thread.Within(free)
	} else {
		_ = b.l.thread.Do(context.Background(), free)
	}
	b.updateCounters()
	if err != nil {
		g.out.End(err)
	}
	close(g.freed)
}

// enter finds what the prefix cache knows of the prompt. It runs on the engine's thread.
func (g *generation) startSession() {
	if g.tree == nil || g.pooling != nil { // a text that is embedded is no beginning of another
		return
	}
	g.session = g.tree.Begin(g.seq, g.keys[:len(g.tokens)])
	if g.stats.Tokens == 0 {
		g.stats.CachedTokens = min(g.session.Cached(), g.stats.PromptTokens)
	}
	g.snapshots = g.planSnapshots()
}

// How far points of a prompt lie apart, and how far the last one is from its end: the tail of a chat template, such as an opened
// thinking block, differs between retries.
const (
	snapshotInterval = 8192
	snapshotTail     = 4
)

// plan lists where the prefill stops to keep the state, for layers that cannot be cut later.
func (g *generation) planSnapshots() []int {
	if !g.needsSnapshots {
		return nil
	}
	n, from := len(g.request.Prompt), g.seq.Offset()
	var points []int
	add := func(p int) {
		if p > from && p < n {
			points = append(points, p)
		}
	}
	add(g.session.Branch())
	for p := snapshotInterval; p < n; p += snapshotInterval {
		add(p)
	}
	add(n - snapshotTail)
	slices.Sort(points)
	return slices.Compact(points)
}

// free gives back what a request has on the engine, and leaves the state in the prefix cache. It runs on the engine's thread.
func (g *generation) free() {
	g.sample.free()
	g.sample = nil
	if g.session != nil {
		g.session.Close(g.keys)
		g.session = nil
	}
	g.pictures.free()
	g.seq.Free()
	g.draftInputs.free()
}

// keys are what a prompt's positions depend on: tokens, and pictures by their content.
func (p *promptPictures) keys(prompt []int32) []prefix.Key {
	keys := prefix.Tokens(prompt)
	if p == nil {
		return keys
	}
	for _, s := range p.spans {
		for i := s.start; i < s.end; i++ {
			keys[i] = prefix.Picture(s.picture.hash)
		}
	}
	return keys
}
