package batch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert/converttest"
	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// cached loads a model of testdata with a prefix cache.
func cached(t *testing.T, name string, o runtime.Options) *Engine {
	t.Helper()
	runtimetest.NoArrays(t)
	l := loadCached(t, name, o)()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// loadCached packs a model and returns a function that loads it anew each time.
func loadCached(t *testing.T, name string, o runtime.Options) func() *Engine {
	t.Helper()
	store, entry := converttest.Pack(t, name)
	o.Float32 = true
	return func() *Engine {
		t.Helper()
		l, err := Open(t.Context(), mlxtest.Open(t), store, entry, o)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

// cacheModels lists models whose layers keep all positions, a window, and a recurrent state.
var cacheModels = []string{"llama-default", "llama-mistral", "qwen3_5-default"}

// randomPrompt returns random token ids.
func randomPrompt(r *rand.Rand, l *Engine, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(3 + r.IntN(int(l.model.Processor.Config.Facts().Vocab)-3))
	}
	return ids
}

// oracle returns the tokens of a greedy request that runs alone and without a prefix cache. It caches them.
type oracle struct {
	*Engine
	t     *testing.T
	known map[string][]int32
}

func (o *oracle) want(prompt []int32, n int, pictures ...runtime.Picture) []int32 {
	o.t.Helper()
	key := fmt.Sprint(prompt)
	for _, p := range pictures {
		key += " " + p.Name
	}
	if len(o.known[key]) < n {
		ids, _, _, err := runtimetest.Collect(o.t.Context(), o, runtime.Request{Prompt: prompt, Pictures: pictures,
			MaxTokens: n, IgnoreEOS: true,
			Draft: runtime.Draft{Mode: runtime.DraftOff}})
		if err != nil {
			o.t.Fatal(err)
		}
		o.known[key] = ids
	}
	return o.known[key][:n]
}

func newOracle(t *testing.T, name string) *oracle {
	t.Helper()
	return &oracle{cached(t, name, runtime.Options{}), t, map[string][]int32{}}
}

// Requests in a batch generate the same tokens as alone.
func TestBatchEqualsAlone(t *testing.T) {
	for _, name := range cacheModels {
		for _, ahead := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ahead ", ahead), func(t *testing.T) {
				want := newOracle(t, name)
				l := cached(t, name, runtime.Options{PrefixCache: 1 << 20})
				l.batcher.stepper.sendsAhead = ahead
				together := 0
				requests := make([]runtime.Request, 7)
				l.batcher.onStep = func(plan []batchItem) error {
					for together == 0 && pendingRequests(l.batcher) < len(requests) {
						time.Sleep(time.Millisecond) // else the first may end before the second arrives
					}
					together = max(together, len(plan))
					return nil
				}
				r := rand.New(rand.NewPCG(5, 5))
				for i := range requests {
					requests[i] = runtime.Request{Prompt: randomPrompt(r, l, 1+r.IntN(40)), MaxTokens: 4 + 3*i, IgnoreEOS: true}
					want.want(requests[i].Prompt, requests[i].MaxTokens)
				}
				var wg sync.WaitGroup
				for _, q := range requests {
					expect := want.want(q.Prompt, q.MaxTokens)
					wg.Go(func() {
						ids, _, last, err := runtimetest.Collect(t.Context(), l, q)
						if err != nil || !slices.Equal(ids, expect) || last.Done != runtime.DoneLength ||
							last.Stats.Tokens != q.MaxTokens {
							t.Errorf("a prompt of %d: %v, %v; want %v", len(q.Prompt), ids, err, expect)
						}
					})
				}
				wg.Wait()
				if together < 2 {
					t.Errorf("at most %d requests ran together", together)
				}
			})
		}
	}
}

// A seeded request draws the same tokens in any batch.
func TestBatchSeeds(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{})
	seed := int64(11)
	r := runtime.Request{Prompt: []int32{5, 6, 7}, MaxTokens: 20, IgnoreEOS: true,
		Sampling: runtime.Sampling{Temperature: 1, TopP: 0.95, Seed: &seed}}
	want, _, _, err := runtimetest.Collect(t.Context(), l, r)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			q := r
			if i > 0 {
				other := int64(100 + i)
				q.Sampling.Seed, q.Prompt = &other, []int32{9, 8, int32(i)}
			}
			if ids, _, _, err := runtimetest.Collect(t.Context(), l, q); err != nil || i == 0 && !slices.Equal(ids, want) {
				t.Errorf("%v, %v; alone %v", ids, err, want)
			}
		})
	}
	wg.Wait()
}

// A conversation evaluates only its new tokens, and a repeated prompt is cached.
func TestConversationIsCached(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: 64 << 20})
			r := rand.New(rand.NewPCG(1, 2))
			conversation := randomPrompt(r, l, 60)
			for turn := range 4 {
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: conversation, MaxTokens: 6,
					IgnoreEOS: true})
				if err != nil || !slices.Equal(ids, want.want(conversation, 6)) {
					t.Errorf("turn %d: %v, %v; want %v", turn, ids, err, want.want(conversation, 6))
				}
				if fresh := len(conversation) - last.Stats.CachedTokens; turn > 0 && fresh > 5 {
					t.Errorf("turn %d: %d of %d tokens were evaluated, want at most 5", turn, fresh, len(conversation))
				}
				conversation = append(append(conversation, ids...), randomPrompt(r, l, 4)...)
			}
			_, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: conversation[:60], MaxTokens: 2,
				IgnoreEOS: true})
			if err != nil || last.Stats.CachedTokens < 60-snapshotTail {
				t.Errorf("the first prompt again: %d tokens cached, %v", last.Stats.CachedTokens, err)
			}
		})
	}
}

// State that one process has stored is restored by the next one, if it computes in the same way.
func TestPrefixDir(t *testing.T) {
	for _, name := range cacheModels {
		t.Run(name, func(t *testing.T) {
			store, entry := converttest.Pack(t, name)
			dir := t.TempDir()
			run := func(o runtime.Options) (ids []int32, cachedTokens int) {
				o.PrefixCache, o.PrefixDir, o.PrefixDisk = 1<<20, dir, 1<<30
				l, err := Open(t.Context(), mlxtest.Open(t), store, entry, o)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				prompt := randomPrompt(rand.New(rand.NewPCG(4, 4)), l, 50)
				ids, _, last, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: prompt, MaxTokens: 6,
					IgnoreEOS: true})
				if err != nil {
					t.Fatal(err)
				}
				return ids, last.Stats.CachedTokens
			}
			first, n := run(runtime.Options{Float32: true})
			second, m := run(runtime.Options{Float32: true})
			if n != 0 || m < 50-snapshotTail || !slices.Equal(first, second) {
				t.Errorf("%d and %d tokens cached; %v, then %v", n, m, first, second)
			}
			if _, n := run(runtime.Options{}); n != 0 {
				t.Errorf("in another type %d tokens are cached", n)
			}
		})
	}
}

// A long prompt delays decoding requests by no more than a chunk per step.
func TestChunkedPrefill(t *testing.T) {
	const chunk = 16
	l := cached(t, "llama-default", runtime.Options{Chunk: chunk})
	var plans [][]int
	l.batcher.onStep = func(plan []batchItem) error {
		rows := []int{}
		for _, s := range plan {
			rows = append(rows, s.rows)
		}
		if plans = append(plans, rows); len(plans) == 4 && len(plan) == 1 { // wait for the long prompt
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if waiting, _ := l.batcher.queue.read(); waiting > 0 {
					break
				}
			}
		}
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	tokens := make(chan int, l.Processor().Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for range l.Generate(ctx, runtime.Request{Prompt: []int32{5, 6}, IgnoreEOS: true}) {
			tokens <- 1
		}
	})
	<-tokens
	long := randomPrompt(rand.New(rand.NewPCG(3, 3)), l, 100)
	if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: long, MaxTokens: 3,
		IgnoreEOS: true}); err != nil {
		t.Error(err)
	}
	stop()
	wg.Wait()
	shared := 0
	for _, rows := range plans {
		if len(rows) == 2 && rows[1] > 1 {
			if shared++; rows[0] != 1 || rows[1] > chunk {
				t.Errorf("a step of %v rows, want 1 and at most %d", rows, chunk)
			}
		}
	}
	if shared < len(long)/chunk {
		t.Errorf("%d steps were shared with a prompt of %d: %v", shared, len(long), plans)
	}
}
