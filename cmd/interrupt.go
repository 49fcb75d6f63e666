package cmd

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals gives a context that the first signal ends; a second one ends the program at once. An interrupt that somebody catches is
// none of them.
func (a *app) signals() (ctx context.Context, stop func()) {
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

// interrupts are who gets Ctrl-C.
type interrupts struct {
	mu    sync.Mutex
	catch func() // nil: nobody, and the program ends
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

// catchInterrupt gives a context that Ctrl-C ends, and not the program, until it is released.
func (a *app) catchInterrupt(ctx context.Context) (caught context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	a.interrupts.set(cancel)
	return ctx, func() {
		a.interrupts.set(nil)
		cancel()
	}
}

// stdin is standard input, whose reads end when ctx does: a signal ends a command that waits for text.
func (a *app) stdin(ctx context.Context) io.Reader { return &interruptible{ctx: ctx, from: a.in} }

type interruptible struct {
	ctx  context.Context
	from io.Reader
}

// Read reads into a buffer of its own, since one that was given up may still end.
func (r *interruptible) Read(p []byte) (int, error) {
	own := make([]byte, min(len(p), 1<<20))
	n, err := await(r.ctx, func() (int, error) { return r.from.Read(own) })
	return copy(p, own[:n]), err
}

// await gives f up when ctx ends, and leaves it to its goroutine: the program is about to end. Reads need it, of standard
// input, and of files that may be pipes, where nothing else ends a wait.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
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
