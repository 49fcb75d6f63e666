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

type readResult struct {
	n   int
	err error
}

// Read leaves a read that does not end to its goroutine, with a buffer of its own: the program is about to end.
func (r *interruptible) Read(p []byte) (int, error) {
	own := make([]byte, min(len(p), 1<<20))
	done := make(chan readResult, 1)
	go func() {
		n, err := r.from.Read(own)
		done <- readResult{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, own[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
