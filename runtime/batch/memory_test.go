package batch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/mlx"
	"github.com/ingotml/ingot/quantize/recipe"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// The size of a request's state is known when the model is loaded: never more than foreseen, and just that once storage
// has outgrown its short first step.
func TestStateSize(t *testing.T) {
	for i, name := range append(slices.Clone(trafficModels), "llama-default") {
		t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
			draft := ""
			if i == len(trafficModels) {
				draft = "llama-mistral"
			}
			l := loadPair(t, name, draft, recipe.Precision{}, runtime.Options{Chunk: 16})
			var worst int64
			drafts := false // drafts with their own KV cache were seen
			l.batcher.onStep = func(plan []batchItem) error {
				for _, s := range plan {
					state := s.g.seq.State()
					if own := s.g.draft.Sequence(); own != nil {
						state, drafts = append(state, own.State()...), true
					}
					var n int64
					for _, a := range state {
						n += int64(a.Bytes())
					}
					if promised := s.g.need(&l.batcher.memory, 1); n > promised {
						t.Errorf("the state of %d tokens takes %d bytes, %d were foreseen", s.g.seq.Offset(), n, promised)
					}
					worst = max(worst, n)
				}
				return nil
			}
			prompt := randomPrompt(rand.New(rand.NewPCG(1, 1)), l, 60)
			for i := range prompt {
				prompt[i] = min(prompt[i], runtimetest.VisionStart-1)
			}
			if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 50,
				IgnoreEOS: true,
				Draft:     fixed(4)}); err != nil {
				t.Fatal(err)
			}
			if want := l.model.Draft != nil && len(l.model.Draft.Layers()) > 0; drafts != want {
				t.Errorf("drafts with state of their own: %v", drafts)
			}
			if promised := l.batcher.memory.shape.Bytes(110, 1); worst == 0 || promised > 2*worst {
				t.Errorf("the state takes %d bytes, %d were foreseen", worst, promised)
			}
		})
	}
}

// A request that never fits into memory is rejected. One that fits ends when its memory is full.
func TestMemoryOfOneRequest(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{Memory: 100})
	_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{4, 5, 6}, MaxTokens: 2})
	if !errors.Is(err, runtime.ErrMemory) || !strings.Contains(err.Error(), "of 3 tokens") ||
		!strings.Contains(err.Error(), "0.2 MB") || !strings.Contains(err.Error(), "0.0 MB") {
		t.Errorf("a request without room: %v", err)
	}
	// Memory grows in steps of 256 tokens, but the context has 128: set the bound directly.
	l.batcher.memory.perRequest = l.batcher.memory.shape.Bytes(1, 1)
	if _, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{4, 5, 6}, MaxTokens: 2,
		IgnoreEOS: true}); err != nil || last.Done != runtime.DoneLength {
		t.Errorf("a request with room: %+v, %v", last, err)
	}
}

// Requests wait for memory that others use, and all of them finish.
func TestWaitForMemory(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want := newOracle(t, name)
			one := want.batcher.memory.shape.Bytes(100, 100)
			l := cached(t, name, runtime.Options{Memory: 2*one + one/2})
			most := 0
			l.batcher.onStep = func(plan []batchItem) error { most = max(most, len(plan)); return nil }
			r := rand.New(rand.NewPCG(4, 9))
			var wg sync.WaitGroup
			for range 6 {
				prompt := randomPrompt(r, l, 10+r.IntN(40))
				expect := want.want(prompt, 8)
				wg.Go(func() {
					ids, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 8,
						IgnoreEOS: true})
					if err != nil || len(ids) != 8 || ids[7] != expect[7] {
						t.Errorf("%v, %v; want %v", ids, err, expect)
					}
				})
			}
			wg.Wait()
			if most > 2 {
				t.Errorf("%d requests ran at once in memory for two", most)
			}
		})
	}
}

// The engine's free memory is divided within its budget, whatever the options are.
func TestDivideMemory(t *testing.T) {
	m := mlx.Memory{Budget: 1000, Active: 100, Mapped: 300}
	for _, c := range []struct {
		o               runtime.Options
		working         int64
		state, prefixes int64
	}{
		{runtime.Options{}, 100, 500, 0},
		{runtime.Options{PrefixCache: -1}, 100, 350, 150},
		{runtime.Options{PrefixCache: 200}, 100, 300, 200},
		{runtime.Options{PrefixCache: 590}, 100, 150, 590}, // a quarter remains for requests
		{runtime.Options{Memory: 77, PrefixCache: 200}, 100, 77, 200},
		{runtime.Options{Memory: -1}, 100, 0, 0},
	} {
		if state, prefixes := divideMemory(c.o, m, c.working); state != c.state || prefixes != c.prefixes {
			t.Errorf("%+v: %d and %d, want %d and %d", c.o, state, prefixes, c.state, c.prefixes)
		}
	}
	if state, _ := divideMemory(runtime.Options{}, mlx.Memory{Budget: 800, Active: 790}, 50); state != 50 {
		t.Errorf("a full engine leaves %d", state)
	}
	if state, prefixes := divideMemory(runtime.Options{PrefixCache: -1}, mlx.Memory{}, 50); state != 0 || prefixes != 0 {
		t.Errorf("without a budget %d and %d", state, prefixes)
	}
}

func TestUsage(t *testing.T) {
	l := cached(t, "qwen3_5-default", runtime.Options{PrefixCache: 1 << 20, Memory: 1 << 30})
	b := l.batcher
	b.onStep = func([]batchItem) error {
		b.queue.mu.Lock()
		defer b.queue.mu.Unlock()
		if b.queue.counters.running != 1 || b.queue.counters.stateBytes < 1000 {
			t.Errorf("while a request runs: %+v", b.queue.counters)
		}
		return nil
	}
	if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{4, 5, 6, 7, 8, 9}, MaxTokens: 5,
		IgnoreEOS: true}); err != nil {
		t.Fatal(err)
	}
	var r runtime.Reporter = l
	u, err := r.Usage(t.Context())
	for u.Running > 0 && err == nil { // the counters are updated after the stream ends
		u, err = r.Usage(t.Context())
	}
	if err != nil || u.Weights < 100_000 || u.StateLimit != 1<<30 || u.State != 0 || u.Waiting != 0 || u.Disk != nil ||
		u.Steps < 2 || u.Shares != u.Steps {
		t.Errorf("%+v, %v", u, err)
	}
	if p := u.Prefix; p == nil || p.Lookups != 1 || p.Keys != 6 || p.Nodes == 0 || p.Bytes == 0 || p.Budget != 1<<20 {
		t.Errorf("the prefix cache: %+v", p)
	}
}
