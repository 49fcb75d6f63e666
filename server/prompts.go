package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ingotml/ingot/chat/prompt"
	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
)

// promptMemory limits the memory for building all prompts: rendering templates and tokenizing. It implements
// prompt.Budget: a request that exceeds the limit waits in a FIFO queue, and after a timeout fails with
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

// Take implements prompt.Budget. A request for more than the total gets the total.
func (p *promptMemory) Take(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, p.total)
	release = func() {
		const large = 64 << 20
		if n >= large {
			debug.FreeOSMemory() // before another request allocates as much
		}
		p.memory.Release(n)
	}
	if p.memory.TryAcquire(n) { // fails if other requests are waiting
		return release, nil
	}
	defer p.waiting.Add(-1)
	if p.waiting.Add(1) > p.queue {
		return nil, fmt.Errorf("%d prompts are waiting for memory: %w", p.queue, runtime.ErrBusy)
	}
	within, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	err = p.memory.Acquire(within, n)
	switch {
	case err == nil:
		return release, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no memory for the prompt within %v: %w", p.wait, runtime.ErrBusy)
	}
	return nil, err
}

// Encode tokenizes a text verbatim.
func (s *Server) Encode(ctx context.Context, m *Model, text string) ([]int32, error) {
	return s.EncodeWith(ctx, text, m.Encode)
}

// EncodeInfill returns the prompt for the gap between two texts, of which the first one may be token ids. The model's
// vocabulary has tokens for it. A prompt of more than most tokens gets less of both texts.
func (s *Server) EncodeInfill(ctx context.Context, m *Model, prefix string, ids []int32, suffix string,
	most int) (*prompt.Prompt, error) {
	f := m.Infill()
	all, err := s.EncodeWith(ctx, prefix+suffix, func(string) ([]int32, error) {
		if ids != nil {
			return f.EncodeAfter(ids, suffix, most)
		}
		return f.Encode(prefix, suffix, most)
	})
	return &prompt.Prompt{IDs: all, Continues: true, EndTokens: f.Ends()}, err
}

// EncodeWith calls encode within the memory for prompts.
func (s *Server) EncodeWith(ctx context.Context, text string, encode func(string) ([]int32, error)) ([]int32, error) {
	return prompt.Encode(ctx, s.prompts, text, encode)
}
