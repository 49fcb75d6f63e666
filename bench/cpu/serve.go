package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// Prompt lengths of op streams, and the short and long prompt of op wait.
const (
	streamPrompt = 16
	shortPrompt  = 32
	longPrompt   = 4096
)

// streams times the tokens of concurrent requests, from when all of them generate until the first one ends.
func (b *bench) streams(ctx context.Context, c command) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var failed error
	var begun, ended time.Time
	speaking, counted := 0, 0
	var wg sync.WaitGroup
	for i := range c.Streams {
		wg.Go(func() {
			r := b.request(streamPrompt+c.Streams, c.Tokens)
			r.Prompt = r.Prompt[i : i+streamPrompt]
			first := true
			for e, err := range b.engine.Generate(ctx, r) {
				mu.Lock()
				switch {
				case err != nil && ctx.Err() == nil:
					failed = err
				case err != nil:
				case first:
					first = false
					if speaking++; speaking == c.Streams {
						begun = time.Now()
					}
				case ended.IsZero() && !begun.IsZero():
					counted++
				}
				if err == nil && e.Done != "" && ended.IsZero() {
					ended = time.Now()
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed == nil && (begun.IsZero() || !ended.After(begun)) {
		failed = fmt.Errorf("%d streams of %d tokens never spoke together", c.Streams, c.Tokens)
	}
	return timing{counted, ended.Sub(begun).Seconds()}, failed
}

// waitJSON has times to the first token of a short prompt, in seconds.
type waitJSON struct {
	Alone   float64 `json:"alone"`
	Behind  float64 `json:"behind"`  // during a long prompt's chunked prefill
	Whole   float64 `json:"whole"`   // during a long prompt's prefill in one step
	Prefill float64 `json:"prefill"` // of the long prompt, with the short one next to it
}

// wait times a short prompt behind a long one. The measured engine prefills in chunks; whole is another engine over the
// same weights that does not.
func (b *bench) wait(ctx context.Context, _ command) (any, error) {
	var w waitJSON
	var err error
	if w.Alone, err = b.first(ctx, b.engine, shortPrompt); err != nil {
		return nil, err
	}
	if w.Behind, w.Prefill, err = b.behind(ctx, b.engine); err != nil {
		return nil, err
	}
	whole, err := b.load(ctx, runtime.Options{Chunk: longPrompt})
	if err != nil {
		return nil, err
	}
	defer whole.Close()
	w.Whole, _, err = b.behind(ctx, whole)
	return w, err
}

// first returns the time to the first token of a prompt.
func (b *bench) first(ctx context.Context, e runtime.Engine, n int) (float64, error) {
	begun := time.Now()
	for _, err := range e.Generate(ctx, b.request(n, 1)) {
		if err != nil {
			return 0, err
		}
	}
	return time.Since(begun).Seconds(), nil
}

// behind times a short prompt that arrives during a long one's prefill, and the long one.
func (b *bench) behind(ctx context.Context, e runtime.Engine) (short, long float64, err error) {
	done := make(chan error, 1)
	go func() {
		var err error
		long, err = b.first(ctx, e, longPrompt)
		done <- err
	}()
	time.Sleep(100 * time.Millisecond) // the long prompt is being prefilled by then
	short, err = b.first(ctx, e, shortPrompt)
	if other := <-done; err == nil {
		err = other
	}
	return short, long, err
}
