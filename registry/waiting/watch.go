package waiting

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// minRate is what has to move, in bytes per second of the time that a watch waits. It is far below any link that is
// used for models, and bounds how long a server can hold a transfer with a byte now and then.
const minRate = 512

// Watch cancels a request over which too little moves. It begins with the wait for a response.
type Watch struct {
	ctx, parent context.Context
	cancel      context.CancelCauseFunc
	p           *Timeouts
	outer       *Watch // of the caller's context, or nil
	level       int    // of p when the wait began

	mu     sync.Mutex
	timer  *time.Timer
	what   string // is waited for
	wait   time.Duration
	until  time.Time     // when the timer fires
	silent time.Time     // since when nothing moved
	moved  int64         // since the timer was set
	pauses int           // the watch is paused
	left   time.Duration // of the wait, while it is paused
	failed *Stall        // why the watch canceled the request
}

// Stall is the error of a request over which too little moved.
type Stall struct {
	Wait  time.Duration
	Moved int64  // during Wait
	what  string // did not come
}

func (e *Stall) Error() string {
	if e.Moved > 0 {
		return fmt.Sprintf("the server is too slow: %d bytes in %s", e.Moved, e.Wait)
	}
	return fmt.Sprintf("the server stalled: no %s for %s", e.what, e.Wait)
}

// watchKey is the key of a context's Watch.
type watchKey struct{}

// Of returns the watch of a request's context, or nil.
func Of(ctx context.Context) *Watch {
	w, _ := ctx.Value(watchKey{}).(*Watch)
	return w
}

// Without returns a context without the watch: a request gets its own. The caller pauses the other one meanwhile.
func Without(ctx context.Context) context.Context {
	if Of(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, watchKey{}, (*Watch)(nil))
}

// Pause stops the watch of a context, if it has one, and those around it, while something else than the server is
// waited for. The caller calls resume once.
func Pause(ctx context.Context) (resume func()) {
	inner := Of(ctx)
	for w := inner; w != nil; w = w.outer {
		w.Pause()
	}
	return func() {
		for w := inner; w != nil; w = w.outer {
			w.Resume()
		}
	}
}

// Watch returns a watch of a request that waits for a response factor times as long as p waits if that is base at
// first. The caller sends the request with its Context, and calls Stop at the end.
func (p *Timeouts) Watch(ctx context.Context, base time.Duration, factor int) *Watch {
	now := time.Now()
	w := &Watch{parent: ctx, outer: Of(ctx), p: p, silent: now, what: "response"}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = context.WithValue(ctx, watchKey{}, w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wait, w.level = p.wait(base, factor)
	w.timer = time.AfterFunc(w.wait, w.expire)
	w.until = now.Add(w.wait)
	return w
}

// Context returns the context of the request.
func (w *Watch) Context() context.Context { return w.ctx }

// Body begins the wait for the body: the response's header has come.
func (w *Watch) Body(base time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard(time.Now())
	w.begin("data", base, 1)
}

// Send begins the wait for a server to take the bytes of a request's body.
func (w *Watch) Send(base time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin("byte taken", base, 1)
}

// Sent begins the wait for a response: all bytes of the request are sent.
func (w *Watch) Sent(base time.Duration, factor int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent = time.Now()
	w.begin("response", base, factor)
}

// begin begins a wait. The caller holds w.mu.
func (w *Watch) begin(what string, base time.Duration, factor int) {
	w.what = what
	w.wait, w.level = w.p.wait(base, factor)
	w.restart()
}

// Moved counts bytes that have come, or were sent.
func (w *Watch) Moved(n int64) {
	if n <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard(time.Now())
	if w.moved += n; w.moved >= w.floor() {
		w.restart()
	}
}

// floor returns how many bytes have to move during a wait.
func (w *Watch) floor() int64 { return max(1, int64(w.wait.Seconds()*minRate)) }

// heard notes a silence that has ended. The caller holds w.mu.
func (w *Watch) heard(now time.Time) {
	if w.pauses == 0 {
		w.p.host.ended(now.Sub(w.silent), w.wait)
	}
	w.silent = now
}

// restart begins the wait anew. The caller holds w.mu.
func (w *Watch) restart() {
	w.moved, w.left = 0, w.wait
	if w.pauses == 0 {
		w.until = time.Now().Add(w.wait)
		w.timer.Reset(w.wait)
	}
}

// Pause stops the watch: its time does not run until Resume. Pauses may nest.
func (w *Watch) Pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses++; w.pauses == 1 {
		w.timer.Stop()
		w.left = max(time.Until(w.until), 0)
	}
}

// Resume ends a pause.
func (w *Watch) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses--; w.pauses == 0 {
		now := time.Now()
		w.silent, w.until = now, now.Add(w.left)
		w.timer.Reset(w.left)
	}
}

// expire cancels the request.
func (w *Watch) expire() {
	w.mu.Lock()
	if w.pauses > 0 || time.Until(w.until) > 0 { // the timer was set again while this call began
		w.mu.Unlock()
		return
	}
	stall, level := &Stall{Wait: w.wait, Moved: w.moved, what: w.what}, w.level
	w.failed = stall
	w.mu.Unlock()
	w.p.stalled(level)
	w.cancel(stall)
}

// Stop ends the watch and the request.
func (w *Watch) Stop() {
	w.mu.Lock()
	w.pauses++ // for a call of expire that has begun
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// Cause returns the [*Stall] or the cause of the caller's context if that ended the request, and otherwise the
// request's own err.
func (w *Watch) Cause(err error) error {
	if err == nil {
		return nil
	}
	if w.parent.Err() != nil {
		return context.Cause(w.parent)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	return err
}

// Reader returns a reader whose reads a watch counts.
func (w *Watch) Reader(r io.Reader) io.Reader { return &watched{r, w} }

type watched struct {
	io.Reader
	w *Watch
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.w.Moved(int64(n))
	return n, err
}
