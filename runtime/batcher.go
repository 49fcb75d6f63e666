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

// ErrBusy reports that the queue of a model is full; a later request may succeed.
var ErrBusy = errors.New("too many requests are waiting")

// batcher schedules a model's requests with continuous batching: each step runs one forward pass over the next tokens
// of the running requests. Requests join and leave the batch between steps. add queues a request; it leaves when it
// ends, fails or is canceled. The steps run on a goroutine of their own, which exits when no requests are left.
type batcher struct {
	l *Local

	mu       sync.Mutex    // guards the following three fields
	waiting  []*generation // in order of arrival, preempted requests first
	looping  bool          // the loop's goroutine is running
	counters batcherCounters

	// The following fields are owned by the loop, or constant.
	running     []*generation   // in order of admission
	onThread    bool            // the loop is running on the engine's thread
	stalled     bool            // all running requests wait for their pictures
	wakeup      chan struct{}   // wakes a stalled loop; capacity 1
	maxWaiting  int             // requests in the queue
	maxRunning  int             // requests in a batch
	sendsAhead  bool            // enqueue the next step before the tokens of the last one are read
	chunk       int             // prefill rows in a step; 0: as many as fit into the step's target duration
	prefillRate prefillRate     // sizes prefill chunks
	depths      depthController // chooses draft depths
	lastStepEnd time.Time       // zero if nothing was running
	memory      memory
	drafter     drafter
	forwards    *models.Repeater
	onStep      func([]batchItem) error // test hook: sees the plan of a step and may fail it
}

// Defaults of Options.
const (
	defaultQueue     = 512
	defaultSequences = 32
)

func newBatcher(l *Local, o Options) *batcher {
	b := &batcher{
		l: l, wakeup: make(chan struct{}, 1), maxWaiting: o.Queue, maxRunning: o.Sequences,
		sendsAhead: l.thread.Info().GPU, chunk: o.Chunk, drafter: l.newDrafter(o.Draft),
		forwards: models.NewRepeater(l.thread, l.model),
	}
	if b.maxWaiting <= 0 {
		b.maxWaiting = defaultQueue
	}
	if b.maxRunning <= 0 {
		b.maxRunning = defaultSequences
	}
	return b
}

// add appends a request to the queue and starts the loop if needed. It returns ErrBusy if the queue is full.
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

// wake wakes the loop if it is stalled. It never blocks.
func (b *batcher) wake() {
	select {
	case b.wakeup <- struct{}{}:
	default: // a wakeup is already pending
	}
}

// loop runs steps until there are no requests. It keeps the engine's thread between steps, because a handoff costs a
// small model a few percent per token, and yields it when another caller is waiting.
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
		if err != nil { // the model is closed: iterate ends the requests with that error
			more = b.iterate()
		}
		if more && b.stalled {
			<-b.wakeup
		}
	}
}

// do runs fn on the engine's thread. If the model is closed, it returns an error without running fn.
func (b *batcher) do(fn func() error) error {
	if b.onThread {
		return b.l.thread.Within(fn)
	}
	return b.l.do(context.Background(), fn)
}

// iterate ends canceled requests, preempts and admits requests, and runs one step. It returns false if no requests are
// left.
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

// updateCounters publishes the counters that Usage reads. finish calls it before Generate returns, so that a
// caller does not find its own request in the counters afterwards.
func (b *batcher) updateCounters() {
	used := b.used()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counters.running, b.counters.stateBytes = len(b.running), used
}

// admit moves waiting requests into the batch, first come, first served, while memory and slots are free. If nothing is
// running, it admits a request regardless of memory.
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

// endCanceled ends running and waiting requests whose context has ended.
func (b *batcher) endCanceled() {
	for _, g := range slices.Clone(b.running) {
		if err := g.ctx.Err(); err != nil {
			b.finish(g, err)
		}
	}
	b.mu.Lock()
	var canceled []*generation
	b.waiting = slices.DeleteFunc(b.waiting, func(g *generation) bool {
		if g.ctx.Err() == nil {
			return false
		}
		canceled = append(canceled, g)
		return true
	})
	b.mu.Unlock()
	for _, g := range canceled {
		b.finish(g, g.ctx.Err())
	}
}

// finish removes a request from the batch, hands its state to the prefix cache and frees its engine memory. It then
// ends the request's events with err; if err is nil, the last event was already sent.
func (b *batcher) finish(g *generation, err error) {
	b.running = slices.DeleteFunc(b.running, func(r *generation) bool { return r == g })
	g.decodeJob.stop()
	g.decodeJob = nil
	// The memory must be freed for a closed model too, for which b.do fails: use the thread itself. An error of the thread
	// means that the engine has ended, and its memory with it.
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

// startSession looks the request's tokens up in the prefix cache and restores their longest cached prefix. It runs on
// the engine's thread.
func (g *generation) startSession() {
	if g.tree == nil || g.pooling != nil { // embedding inputs do not use the prefix cache
		return
	}
	g.session = g.tree.Begin(g.seq, g.keys[:len(g.tokens)])
	if g.stats.Tokens == 0 {
		g.stats.CachedTokens = min(g.session.Cached(), g.stats.PromptTokens)
	}
	g.snapshots = g.planSnapshots()
}

// Positions of the snapshots that prefill takes: every snapshotInterval tokens, and snapshotTail tokens before the
// prompt's end. The last tokens of a chat template, such as an opened thinking block, often differ when a prompt is
// retried, so a snapshot at the very end would not be reused.
const (
	snapshotInterval = 8192
	snapshotTail     = 4
)

// planSnapshots returns the prompt positions at which prefill pauses to take a snapshot, ascending. They include the
// position where the prompt diverges from cached ones. Only models with layers whose state cannot be truncated to an
// earlier position need them.
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

// free releases a request's engine memory and hands its state to the prefix cache. It runs on the engine's thread.
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

// keys returns the prefix cache's keys of a prompt: token ids, and the content hash of a picture at its positions.
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
