package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// A step that fails because of one request ends only that request.
func TestFailedStep(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 1 << 20})
			const bad = 77
			broken := errors.New("a kernel failed")
			l.batcher.onStep = func(plan []batchItem) error {
				for _, s := range plan {
					if s.g.tokens[0] == bad && s.g.stats.Tokens == 5 {
						return broken
					}
				}
				return nil
			}
			prompts := [][]int32{{11, 12, 13}, {bad, 5, 6, 7}, {21, 22}, {31}}
			for _, p := range prompts {
				want.want(p, 12)
			}
			var wg sync.WaitGroup
			for _, p := range prompts {
				wg.Go(func() {
					ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: p, MaxTokens: 12, IgnoreEOS: true})
					switch expect := want.known[fmt.Sprint(p)]; {
					case p[0] == bad:
						if !errors.Is(err, broken) || !slices.Equal(ids, expect[:5]) {
							t.Errorf("the failing request: %v, %v", ids, err)
						}
					case err != nil || !slices.Equal(ids, expect):
						t.Errorf("a request beside it: %v, %v; want %v", ids, err, expect)
					}
				})
			}
			wg.Wait()
		})
	}
}

// Closing the model ends running requests with an error.
func TestCloseEndsRequests(t *testing.T) {
	store, entry := converttest.Pack(t, "llama-default")
	l, err := Open(t.Context(), mlxtest.Open(t), store, entry, runtime.Options{PrefixCache: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 3
	l.batcher.onStep = func(plan []batchItem) error {
		for plan[0].g.stats.Tokens >= tokens && !l.model.Closing() && t.Context().Err() == nil {
			time.Sleep(time.Millisecond) // else the request may end before Close is called
		}
		return nil
	}
	for e, err := range l.Generate(t.Context(), runtime.Request{Prompt: []int32{4, 5}, IgnoreEOS: true}) {
		if err != nil {
			if !errors.Is(err, load.ErrClosed) {
				t.Errorf("the stream ended with %v", err)
			}
			break
		}
		if e.Done != "" {
			t.Fatal("the stream ended by itself")
		}
		if e.Stats.Tokens == tokens {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The loop yields the engine between two steps, and a model can be closed while it generates.
func TestEngineBetweenSteps(t *testing.T) {
	runtimetest.NoArrays(t)
	l := loadCached(t, "llama-default", runtime.Options{})()
	const tokens = 1000
	steps, begun := 0, make(chan struct{})
	l.batcher.onStep = func([]batchItem) error {
		if steps++; steps == 3 {
			close(begun)
		}
		time.Sleep(time.Millisecond)
		return nil
	}
	ended := make(chan error, 1)
	go func() {
		_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{3, 4, 5}, MaxTokens: tokens,
			IgnoreEOS: true})
		ended <- err
	}()
	<-begun
	for range 3 {
		if err := l.model.Do(t.Context(), func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, load.ErrClosed) {
		t.Errorf("the request ends with %v", err)
	}
	if steps >= tokens {
		t.Errorf("the engine was free after %d steps only", steps)
	}
}

// After its stream has ended, a request no longer appears in the usage, even if other callers keep the engine from the
// loop.
func TestUsageAfterTheEnd(t *testing.T) {
	l := loadCached(t, "llama-default", runtime.Options{})()
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for l.model.Do(ctx, func() error { return nil }) == nil {
			}
		})
	}
	defer others.Wait()
	defer stop()
	for i := range 60 {
		ctx, cancel := context.WithCancel(ctx)
		for _, err := range l.Generate(ctx, runtime.Request{Prompt: []int32{3, 4, 5}, MaxTokens: 2, IgnoreEOS: true}) {
			switch {
			case i%3 == 1:
				cancel()
			case err != nil:
				t.Fatal(err)
			}
			if i%3 == 2 {
				break
			}
		}
		cancel()
		if u, err := l.Usage(t.Context()); err != nil || u.Running != 0 || u.State != 0 {
			t.Fatalf("after request %d: %+v, %v", i, u, err)
		}
	}
}
