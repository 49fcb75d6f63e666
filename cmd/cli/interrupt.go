package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Signals returns a context that the first signal cancels. A second signal ends the program at once. Interrupts that
// CatchInterrupt handles do not count.
func (a *App) Signals() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for {
			select {
			case s := <-c:
				if s == os.Interrupt && a.interrupts.caught() {
					continue
				}
				signal.Stop(c)
				cancel()
			case <-ctx.Done():
			}
			return
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		cancel()
	}
}

// interrupts holds the current handler of Ctrl-C.
type interrupts struct {
	mu    sync.Mutex
	catch func() // nil: an interrupt ends the program
}

func (i *interrupts) caught() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.catch != nil {
		i.catch()
	}
	return i.catch != nil
}

func (i *interrupts) set(catch func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.catch = catch
}

// CatchInterrupt returns a context that Ctrl-C cancels. Until release is called, Ctrl-C does not end the program.
func (a *App) CatchInterrupt(ctx context.Context) (caught context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	a.interrupts.set(cancel)
	return ctx, func() {
		a.interrupts.set(nil)
		cancel()
	}
}

// Stdin returns standard input as a reader whose reads end when ctx is canceled, so that a signal ends a command that
// waits for input.
func (a *App) Stdin(ctx context.Context) io.Reader { return &interruptible{ctx: ctx, source: a.In} }

type interruptible struct {
	ctx    context.Context
	source io.Reader
}

// Read reads into a buffer of its own, since an abandoned read may still complete.
func (r *interruptible) Read(p []byte) (int, error) {
	own := make([]byte, min(len(p), 1<<20))
	n, err := Await(r.ctx, func() (int, error) { return r.source.Read(own) })
	return copy(p, own[:n]), err
}

// Await returns when f returns or ctx is canceled. In the latter case f stays behind in its goroutine, which is fine
// because the program is about to end. Reads of standard input and of possible pipes need it: nothing else interrupts
// them.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case got := <-done:
		return got.value, got.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
