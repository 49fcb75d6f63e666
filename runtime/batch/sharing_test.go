package batch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// together holds the engine's thread until the given number of requests wait, so that all are admitted at once.
func together(t *testing.T, l *Engine, arrivals int) {
	t.Helper()
	held := make(chan struct{})
	go func() {
		err := l.model.Do(t.Context(), func() error {
			close(held)
			for queued(l.batcher) < arrivals && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-held
}

// Prompts that arrive together and begin the same evaluate the common part once, whatever their layers keep.
func TestSharedBeginning(t *testing.T) {
	const common, own, requests, tokens = 40, 10, 5, 3
	for _, name := range append(slices.Clone(cacheModels), "nemotron_h-published", "glm_moe_dsa-published") {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 8 << 20})
			r := rand.New(rand.NewPCG(3, 3))
			start := randomPrompt(r, l, common)
			var prompts [][]int32
			for range requests {
				p := slices.Concat(start, randomPrompt(r, l, own))
				prompts = append(prompts, p)
				want.want(p, tokens)
			}
			rows := 0
			l.batcher.onStep = func(plan []batchItem) error {
				for _, s := range plan {
					rows += s.rows
				}
				return nil
			}
			together(t, l, requests)
			var wg sync.WaitGroup
			for _, p := range prompts {
				expect := want.want(p, tokens)
				wg.Go(func() {
					ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: p, MaxTokens: tokens,
						IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}})
					if err != nil || !slices.Equal(ids, expect) {
						t.Errorf("%v, %v; want %v", ids, err, expect)
					}
				})
			}
			wg.Wait()
			if want := common + requests*(own+tokens-1); rows != want {
				t.Errorf("%d rows, want %d", rows, want)
			}
		})
	}
}

// A prompt continues from what a running request has evaluated, even if nothing of that is in the prefix cache yet.
func TestCopyOverlap(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{PrefixCache: 8 << 20})
	prompt := randomPrompt(rand.New(rand.NewPCG(4, 4)), l, 60)
	first := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var once sync.Once
		for range l.Generate(t.Context(), runtime.Request{Prompt: prompt, MaxTokens: 200, IgnoreEOS: true}) {
			once.Do(func() { close(first) })
		}
	})
	<-first
	_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{MaxTokens: 1, IgnoreEOS: true,
		Prompt: slices.Concat(prompt[:50], []int32{5, 6})})
	if err != nil || last.Stats.CachedTokens != 50 {
		t.Errorf("%d tokens cached, %v; want 50", last.Stats.CachedTokens, err)
	}
	wg.Wait()
}

// When a leader is canceled, those that wait for it continue: from what it had evaluated, or on their own.
func TestLeaderEnds(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 8 << 20, Chunk: 8})
			r := rand.New(rand.NewPCG(5, 5))
			start := randomPrompt(r, l, 44)
			ctx, cancel := context.WithCancel(t.Context())
			waited := false
			l.batcher.onStep = func([]batchItem) error {
				for _, g := range l.batcher.running {
					if g.leader != nil {
						waited = true
						cancel()
					}
				}
				return nil
			}
			expect := want.want(append(slices.Clone(start), 7), 3)
			together(t, l, 2)
			var wg sync.WaitGroup
			wg.Go(func() {
				prompt := append(slices.Clone(start), 9, 9)
				for range l.Generate(ctx, runtime.Request{Prompt: prompt, IgnoreEOS: true}) {
				}
			})
			wg.Go(func() {
				for queued(l.batcher) == 0 { // the other one is first
					time.Sleep(time.Millisecond)
				}
				ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: append(slices.Clone(start), 7),
					MaxTokens: 3, IgnoreEOS: true})
				if err != nil || !slices.Equal(ids, expect) {
					t.Errorf("%v, %v; want %v", ids, err, expect)
				}
				cancel()
			})
			wg.Wait()
			if !waited {
				t.Error("no request waited")
			}
		})
	}
}

// A sparse layer that begins to choose positions after a shared prefix reads the prefix's copy, which it makes then,
// and not in each later step.
func TestSharedPrefixBecomesSparse(t *testing.T) {
	const budget = 12 // of positions, in both models
	for _, name := range []string{"deepseek_v32-published", "glm_moe_dsa-published"} {
		for _, longer := range []int{1, 4, 18} {
			t.Run(fmt.Sprint(name, " ", longer), func(t *testing.T) {
				prompt := make([]int32, budget+longer)
				for i := range prompt {
					prompt[i] = int32(5 + 37*i%101)
				}
				want := newOracle(t, name)
				l := cached(t, name, runtime.Options{PrefixCache: 1 << 20})
				first := runtime.Request{Prompt: prompt, MaxTokens: 1, IgnoreEOS: true}
				if _, _, _, err := runtimetest.Collect(t.Context(), l, first); err != nil {
					t.Fatal(err)
				}
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt[:budget],
					MaxTokens: 8, IgnoreEOS: true, Draft: runtime.Draft{Mode: runtime.DraftOff}})
				if expect := want.want(prompt[:budget], 8); err != nil || !slices.Equal(ids, expect) ||
					last.Stats.CachedTokens != budget-1 {
					t.Errorf("%v, want %v; %d tokens were cached, %v", ids, expect, last.Stats.CachedTokens, err)
				}
			})
		}
	}
}
