package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/talk"
)

// promptMemory is the memory that all prompts may take while they are made: renders of templates and tokenizers. It
// implements talk.Budget: a request that does not fit waits in a FIFO queue, for a limited time, and then fails with
// runtime.ErrBusy.
type promptMemory struct {
	memory  *semaphore.Weighted
	total   int64
	waiting atomic.Int64
	queue   int64
	wait    time.Duration
}

func newPrompts(total int64, wait time.Duration) *promptMemory {
	return &promptMemory{memory: semaphore.NewWeighted(total), total: total, queue: limits.PromptQueue, wait: wait}
}

// Take implements talk.Budget. What wants more than there is gets all of it.
func (p *promptMemory) Take(ctx context.Context, n int64) (give func(), err error) {
	n = min(n, p.total)
	give = func() {
		const large = 64 << 20
		if n >= large {
			debug.FreeOSMemory() // before others take as much
		}
		p.memory.Release(n)
	}
	if p.memory.TryAcquire(n) { // never before those who wait
		return give, nil
	}
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > p.queue {
		return nil, fmt.Errorf("%d prompts wait for memory: %w", p.queue, runtime.ErrBusy)
	}
	within, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	err = p.memory.Acquire(within, n)
	switch {
	case err == nil:
		return give, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("other prompts took the memory for %v: %w", p.wait, runtime.ErrBusy)
	}
	return nil, err
}

// encode makes tokens of a text as it is.
func (s *Server) encode(ctx context.Context, m *model, text string) ([]int32, error) {
	return talk.Encode(ctx, s.prompts, text, m.Encode)
}
