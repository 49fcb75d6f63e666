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

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// pendingRequests returns the number of requests that run or wait.
func pendingRequests(b *batcher) int {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	return len(b.running) + len(b.queue.waiting)
}

func TestDivideRows(t *testing.T) {
	for _, c := range []struct {
		rows                   int
		needed, capacity, want []int
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
		prompts := make([]prompt, len(c.needed))
		for i := range prompts {
			prompts[i] = prompt{needed: c.needed[i], capacity: c.capacity[i]}
		}
		if got := divideRows(c.rows, prompts); !slices.Equal(got, c.want) {
			t.Errorf("%d rows for %v with capacity %v: %v, want %v", c.rows, c.needed, c.capacity, got, c.want)
		}
	}
}

// Prompts whose state is restored take part in a step as long as the copies fit, and the first one always does.
func TestDivideRowsOfRestored(t *testing.T) {
	for _, c := range []struct {
		rows           int
		restored, want []int
	}{
		{32, []int{10, 10, 10, 10}, []int{1, 1, 0, 0}},
		{64, []int{10, 10, 50, 10}, []int{1, 1, 0, 1}},
		{8, []int{100, 0}, []int{1, 0}},
		{8, []int{0, 100}, []int{1, 0}},
		{1, []int{100}, []int{1}},
	} {
		prompts := make([]prompt, len(c.restored))
		for i, n := range c.restored {
			prompts[i] = prompt{needed: 1, capacity: 1, restored: n}
		}
		if got := divideRows(c.rows, prompts); !slices.Equal(got, c.want) {
			t.Errorf("%d rows for state of %v: %v, want %v", c.rows, c.restored, got, c.want)
		}
	}
}

func TestPrefillRate(t *testing.T) {
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

// The pause comes after the step that samples a request's first token, not after the steps of its prompt or of later
// tokens.
func TestStartsStream(t *testing.T) {
	begun := &generation{stats: runtime.Stats{Tokens: 1}}
	fresh := &generation{}
	for _, c := range []struct {
		plan []batchItem
		want bool
	}{
		{nil, false},
		{[]batchItem{{g: fresh, rows: 8}}, false},
		{[]batchItem{{g: begun, rows: 1, wantsToken: true}}, false},
		{[]batchItem{{g: begun, rows: 1, wantsToken: true}, {g: fresh, rows: 8}}, false},
		{[]batchItem{{g: begun, rows: 1, wantsToken: true}, {g: fresh, rows: 8, wantsToken: true}}, true},
	} {
		if got := startsStream(c.plan); got != c.want {
			t.Errorf("%+v: %v, want %v", c.plan, got, c.want)
		}
	}
}
