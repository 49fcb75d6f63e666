package cmd

import (
	"context"
	"io"
)

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
