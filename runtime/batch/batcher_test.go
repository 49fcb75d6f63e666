package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/mlx/mlxtest"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/load"
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
	store, entry := runtimetest.Pack(t, name)
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

// pendingRequests returns the number of requests that run or wait.
func pendingRequests(b *batcher) int {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	return len(b.running) + len(b.queue.waiting)
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
			store, entry := runtimetest.Pack(t, name)
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
		plans = append(plans, rows)
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

func TestShareOut(t *testing.T) {
	for _, c := range []struct {
		rows               int
		needs, rooms, want []int
	}{
		{8, nil, nil, []int{}},
		{8, []int{100}, []int{100}, []int{8}},
		{8, []int{3}, []int{3}, []int{3}},
		{8, []int{100, 3}, []int{100, 3}, []int{5, 3}},                  // a short prompt behind a long one
		{8, []int{100, 100, 100}, []int{100, 100, 100}, []int{8, 0, 0}}, // one after the other
		{8, []int{100, 50, 3}, []int{100, 50, 3}, []int{4, 1, 3}},
		{9, []int{100, 50}, []int{100, 50}, []int{5, 4}},
		{64, []int{100, 50, 3}, []int{16, 50, 3}, []int{16, 45, 3}}, // the first one stops at a snapshot
		{64, []int{4, 5}, []int{4, 5}, []int{4, 5}},
		{1, []int{100, 3}, []int{100, 3}, []int{1, 0}},
	} {
		if got := divideRows(c.rows, c.needs, c.rooms); !slices.Equal(got, c.want) {
			t.Errorf("%d rows for %v with room for %v: %v, want %v", c.rows, c.needs, c.rooms, got, c.want)
		}
	}
}

func TestPace(t *testing.T) {
	var p prefillRate
	if n := p.rows(time.Second); n != initialRows {
		t.Errorf("%d rows before the first measurement", n)
	}
	p.add(3, time.Second)
	p.add(1000, 0)
	if p != 0 {
		t.Errorf("a rate of %v without valid measurements", p)
	}
	p.add(500, time.Second)
	if n := p.rows(time.Second); n != 480 {
		t.Errorf("%d rows in a second at 500 a second", n)
	}
	for range 30 {
		p.add(2000, 20*time.Second)
	}
	if a, b := p.rows(time.Second), p.rows(time.Millisecond); a != 96 || b != minRows {
		t.Errorf("at 100 a second %d rows in one, %d in a thousandth", a, b)
	}
	p = 1e9
	if n := p.rows(time.Second); n != maxRows {
		t.Errorf("%d rows at most", n)
	}
}

// A slow reader does not delay other requests, and a request beyond the queue fails.
func TestSlowReaderAndQueue(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{Sequences: 1, Queue: 1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		first := true
		for range l.Generate(ctx, runtime.Request{Prompt: []int32{4, 5}, IgnoreEOS: true, MaxTokens: 400}) {
			if first {
				first = false
				close(started)
				<-release
			}
		}
	})
	<-started
	waiting := make(chan error, 1)
	wg.Go(func() {
		_, _, _, err := runtimetest.Collect(ctx, l, runtime.Request{Prompt: []int32{6}, MaxTokens: 2, IgnoreEOS: true})
		waiting <- err
	})
	deadline := time.Now().Add(10 * time.Second)
	var busy bool
	for !busy && time.Now().Before(deadline) {
		l.batcher.queue.mu.Lock()
		busy = len(l.batcher.queue.waiting) == 1
		done := len(waiting) == 1
		l.batcher.queue.mu.Unlock()
		if done {
			break
		}
	}
	if busy {
		if _, _, _, err := runtimetest.Collect(ctx, l, runtime.Request{Prompt: []int32{7}, MaxTokens: 1}); !errors.Is(err,
			runtime.ErrBusy) &&
			err != nil {
			t.Errorf("beyond the queue: %v", err)
		}
	}
	if err := <-waiting; err != nil { // although the first one's caller reads nothing
		t.Error(err)
	}
	close(release)
	wg.Wait()
}

// When the state of all requests exceeds the memory, the youngest are preempted. All requests still generate the same
// tokens, without an error.
func TestMemory(t *testing.T) {
	for _, name := range cacheModels {
		for _, keep := range []int64{0, 1 << 20} {
			t.Run(fmt.Sprint(name, " cache ", keep), func(t *testing.T) {
				want, l := newOracle(t, name), cached(t, name, runtime.Options{PrefixCache: keep})
				r := rand.New(rand.NewPCG(8, 8))
				requests := make([]runtime.Request, 4)
				for i := range requests {
					seed := int64(i)
					requests[i] = runtime.Request{Prompt: randomPrompt(r, l, 5+r.IntN(20)), MaxTokens: 8, IgnoreEOS: true}
					want.want(requests[i].Prompt, 8)
					if i == 3 {
						requests[i].Sampling = runtime.Sampling{Temperature: 1, Seed: &seed}
					}
				}
				alone, _, _, err := runtimetest.Collect(t.Context(), want, requests[3])
				if err != nil {
					t.Fatal(err)
				}
				most, paused := 0, map[*generation]bool{}
				l.batcher.onStep = func(plan []batchItem) error {
					for most == 0 && queued(l.batcher)+len(plan) < len(requests) { // until all have arrived
						time.Sleep(time.Millisecond)
					}
					most = max(most, len(plan))
					if len(plan) == len(requests) {
						l.batcher.memory.limit = 1
					}
					for _, s := range plan {
						if s.g.stats.Tokens > 0 && s.g.pending() > 1 {
							paused[s.g] = true
						}
					}
					return nil
				}
				var wg sync.WaitGroup
				for i, q := range requests {
					expect := alone
					if i < 3 {
						expect = want.want(q.Prompt, 8)
					}
					wg.Go(func() {
						if ids, _, last, err := runtimetest.Collect(t.Context(), l, q); err != nil || !slices.Equal(ids, expect) ||
							last.Stats.Tokens != 8 {
							t.Errorf("request %d: %v, %v; want %v", i, ids, err, expect)
						}
					})
				}
				wg.Wait()
				if most != len(requests) || keep == 0 && len(paused) == 0 {
					t.Errorf("at most %d requests in a step, %d preempted", most, len(paused))
				}
			})
		}
	}
}

func queued(b *batcher) int {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	return len(b.queue.waiting)
}

// A request that is canceled while it waits ends at once.
func TestLeaveQueue(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{Sequences: 1})
	busy, stop := context.WithCancel(t.Context())
	defer stop()
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var once sync.Once
		for range l.Generate(busy, runtime.Request{Prompt: []int32{4, 5}, IgnoreEOS: true}) {
			once.Do(func() { close(started) })
			time.Sleep(2 * time.Millisecond)
		}
	})
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, _, err := runtimetest.Collect(ctx, l, runtime.Request{Prompt: []int32{6}, MaxTokens: 100,
		IgnoreEOS: true}); err != nil &&
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request canceled in the queue: %v", err)
	}
	stop()
	wg.Wait()
}

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
	store, entry := runtimetest.Pack(t, "llama-default")
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
