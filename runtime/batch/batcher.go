package batch

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/ranks"
)

// batcher schedules a model's requests with continuous batching: each step runs one forward pass over the next tokens
// of the running requests. Requests join and leave the batch between steps. add queues a request; it leaves when it
// ends, fails or is canceled. The steps run on a goroutine of their own, which exits when no requests are left.
//
// Only queue and loop.wakeup are shared with other goroutines. Everything else is owned by the loop, or constant.
type batcher struct {
	model       *load.Model
	queue       queue
	loop        loop
	running     []*generation // in order of admission
	maxRunning  int           // requests in a batch
	minShared   int           // see minShared
	memory      memory
	prefixes    *prefixes
	prefill     prefill
	work        workload
	drafting    *drafting
	stepper     stepper
	ranks       *ranks.Leader           // of the ranks that have parts of the model; nil without
	lastStepEnd time.Time               // zero if nothing was running
	onStep      func([]batchItem) error // test hook: sees the plan of a step and may fail it
}

// Defaults of Options.
const (
	defaultQueue     = 512
	defaultSequences = 32
)

// mostSequences returns the number of requests in a batch.
func mostSequences(o runtime.Options) int { return cmp.Or(max(o.Sequences, 0), defaultSequences) }

// newBatcher returns the batcher of a model whose requests share the given memory. It runs on the engine's thread.
func newBatcher(m *load.Model, mem memory, p *prefixes, l *ranks.Leader, o runtime.Options) *batcher {
	d := newDrafting(m, l, o.Draft)
	first := 0
	if m.Stages != nil { // the last rank waits for all others
		first = minRows
	}
	return &batcher{
		model:      m,
		queue:      queue{max: cmp.Or(max(o.Queue, 0), defaultQueue), slots: mostSequences(o)},
		loop:       loop{wakeup: make(chan struct{}, 1)},
		maxRunning: mostSequences(o),
		minShared:  minShared,
		memory:     mem,
		prefixes:   p,
		prefill:    prefill{chunk: o.Chunk, first: first, gap: gapLimit{max: cmp.Or(o.MaxGap, defaultMaxGap)}},
		drafting:   d,
		stepper:    newStepper(m, d, l),
		ranks:      l,
	}
}

// add appends a request to the queue and starts the loop if needed. It returns an error if the queue is full, or the
// request's deadline too early.
func (b *batcher) add(g *generation) error {
	if err := b.ranks.Err(); err != nil {
		return err
	}
	start, err := b.queue.add(g)
	if err != nil {
		return err
	}
	if start {
		go b.run()
	}
	b.loop.wake()
	return nil
}

// loop is the state of the batcher's goroutine.
type loop struct {
	onThread bool          // it is running on the engine's thread
	stalled  bool          // all running requests wait for their pictures
	wakeup   chan struct{} // wakes a stalled loop; capacity 1
}

// wake wakes the loop if it is stalled. It never blocks.
func (l *loop) wake() {
	select {
	case l.wakeup <- struct{}{}:
	default: // a wakeup is already pending
	}
}

// run runs steps until there are no requests. It keeps the engine's thread between steps, because a handoff costs a
// small model a few percent per token, and yields it when another caller is waiting.
func (b *batcher) run() {
	defer b.returnMemoryWhenIdle()
	for more := true; more; {
		err := b.model.Do(context.Background(), func() error {
			b.loop.onThread = true
			defer func() { b.loop.onThread = false }()
			for more = b.iterate(); more && !b.loop.stalled && !b.model.Thread.Awaited() && !b.model.Closing(); {
				more = b.iterate()
			}
			return nil
		})
		if err != nil { // the model is closed: iterate ends the requests with that error
			more = b.iterate()
		}
		if more && b.loop.stalled {
			<-b.loop.wakeup
		}
	}
}

// idleTime is how long after its last request a model returns memory. Doing so takes milliseconds, and the next request
// has to allocate again.
const idleTime = 3 * time.Second

// returnMemoryWhenIdle frees what running requests had allocated, unless there are others within idleTime: buffers that
// the engine keeps for reuse, and the free pages of both heaps.
func (b *batcher) returnMemoryWhenIdle() {
	_, last := b.queue.read()
	time.AfterFunc(idleTime, func() {
		if waiting, now := b.queue.read(); waiting > 0 || now.running > 0 || now.steps != last.steps {
			return
		}
		var written <-chan struct{}
		err := b.model.Do(context.Background(), func() error {
			b.prefixes.unpark()
			written = b.prefixes.written()
			b.ranks.ClearCache()
			b.model.Thread.ClearCache()
			return nil
		})
		if err == nil { // else the model is closed
			<-written // what is being written to disk is not free yet
			debug.FreeOSMemory()
		}
	})
}

// do runs fn on the engine's thread. If the model is closed, it returns an error without running fn. If fn fails, the
// other ranks may have done what this one has not, so that the group ends.
func (b *batcher) do(fn func() error) error {
	err := b.doAlone(fn)
	if err != nil && b.ranks != nil {
		b.ranks.End(fmt.Errorf("rank 0: %w", err))
		return b.ranks.Err()
	}
	return err
}

// doAlone is do for what other ranks do not do.
func (b *batcher) doAlone(fn func() error) error {
	if b.loop.onThread {
		return b.model.Thread.Within(fn)
	}
	return b.model.Do(context.Background(), fn)
}

// iterate ends canceled requests, preempts and admits requests, and runs one step. It returns false if no requests are
// left.
func (b *batcher) iterate() bool {
	b.loop.stalled = false
	b.endCanceled()
	if err := b.ranks.Err(); err != nil {
		b.endAll(err)
	}
	b.preempt()
	b.admit()
	b.updateCounters()
	if len(b.running) == 0 {
		b.lastStepEnd = time.Time{}
		b.ranks.Flush() // what requests that have ended let the other ranks free
	}
	if !b.queue.countStep(len(b.running)) {
		return false
	}
	if len(b.running) > 0 {
		b.step()
	}
	return true
}

// updateCounters publishes the counters that Usage reads. finish calls it before Generate returns, so that a
// caller does not find its own request in the counters afterwards.
func (b *batcher) updateCounters() {
	b.work.rows, b.work.rate = 0, b.prefill.rate
	for _, g := range b.running {
		if g.prefilling() {
			b.work.rows += g.pending()
		}
	}
	b.queue.publish(len(b.running), b.used(), b.work)
}

// admit moves waiting requests into the batch, in order of rank, while memory and slots are free. If nothing runs, it
// admits a request regardless of memory.
func (b *batcher) admit() {
	for {
		g := b.queue.next(func(g *generation) bool {
			return len(b.running) < b.maxRunning && (len(b.running) == 0 || b.fits(g))
		})
		if g == nil {
			return
		}
		b.running = append(b.running, g)
		g.admitted = time.Now()
		err := b.do(func() error {
			if g.prefixes == nil { // it cannot continue what is parked
				b.prefixes.unpark()
			}
			g.startSession()
			if b.ranks == nil { // other ranks do not get the hint, and their storage would grow in other steps
				g.seq.Expect(len(g.tokens) + 1)
			}
			b.findOverlaps(g)
			g.copyOverlap(b.minShared)
			return nil
		})
		if err != nil {
			b.finish(g, err)
		}
	}
}

// fits reports whether there is memory to admit a request.
func (b *batcher) fits(g *generation) bool {
	return b.memory.limit <= 0 || b.used()+g.need(&b.memory, admissionTokens) <= b.memory.limit
}

// used returns the size of the running requests' state after their next token.
func (b *batcher) used() (n int64) {
	for _, g := range b.running {
		n += g.need(&b.memory, 1)
	}
	return n
}

// preempt moves the running requests of the highest rank back to the queue while the state of all exceeds its limit, or
// while a request of higher priority waits for a slot. When they are admitted again, they resume from the prefix cache,
// or evaluate their tokens again; their callers only see a pause. The last running request is never preempted.
func (b *batcher) preempt() {
	for len(b.running) > 1 {
		g := slices.MaxFunc(b.running, compareRanks)
		overMemory := b.memory.limit > 0 && b.used() > b.memory.limit
		if !overMemory && (len(b.running) < b.maxRunning || !b.queue.outranks(g)) {
			return
		}
		b.running = slices.DeleteFunc(b.running, func(r *generation) bool { return r == g })
		if err := b.do(func() error { b.stepper.forget(); g.pause(); return nil }); err != nil {
			b.finish(g, err)
			continue
		}
		b.queue.putBack(g)
	}
}

// endCanceled ends running and waiting requests whose context has ended.
func (b *batcher) endCanceled() {
	for _, g := range slices.Clone(b.running) {
		if g.ctx.Err() != nil {
			b.finish(g, context.Cause(g.ctx))
		}
	}
	for _, g := range b.queue.removeCanceled() {
		b.finish(g, context.Cause(g.ctx))
	}
}

// endAll ends the running and the waiting requests.
func (b *batcher) endAll(err error) {
	for _, g := range slices.Clone(b.running) {
		b.finish(g, err)
	}
	for g := b.queue.next(anyRequest); g != nil; g = b.queue.next(anyRequest) {
		b.finish(g, err)
	}
}

func anyRequest(*generation) bool { return true }

// finish removes a request from the batch, hands its state to the prefix cache and frees its engine memory. It then
// ends the request's events with err; if err is nil, the last event was already sent.
func (b *batcher) finish(g *generation, err error) {
	b.running = slices.DeleteFunc(b.running, func(r *generation) bool { return r == g })
	if !g.admitted.IsZero() {
		b.work.addService(time.Since(g.admitted))
	}
	g.pictures.stop()
	// The memory must be freed for a closed model too, for which b.do fails: use the thread itself. An error of the thread
	// means that the engine has ended, and its memory with it.
	alone := len(b.running) == 0
	free := func() error { b.stepper.forget(); g.free(alone); return nil }
	if b.loop.onThread {
		_ = b.model.Thread.Within(free)
	} else {
		_ = b.model.Thread.Do(context.Background(), free)
	}
	b.updateCounters()
	if err != nil {
		g.out.End(err)
	}
	close(g.freed)
}

// encodeNextPicture runs the next decoded picture through the vision tower, and reports whether there was one.
func (b *batcher) encodeNextPicture() bool {
	for _, g := range b.running {
		if !g.pictures.pending() {
			continue
		}
		d := g.pictures.decoded(g.ctx, b.model.Pictures, b.loop.wake)
		if d == nil {
			continue
		}
		err := d.Err
		if err == nil {
			err = b.doAlone(func() error { return b.model.Pictures.RunTower(g.ctx, g.pictures.next(), d.Patches) })
		}
		d.cancel()
		d.Free()
		if err != nil {
			b.finish(g, err)
			return true
		}
		g.pictures.encoded++
		return true
	}
	return false
}
