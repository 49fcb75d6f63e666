package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/runtimetest"
)

// arrival is a request of the tests of the order.
func arrival(at time.Duration, priority int) *generation {
	return &generation{ctx: context.Background(), started: time.Unix(0, 0).Add(at),
		request: runtime.Request{Priority: priority}}
}

// Requests wait by arrival; a level of priority counts as much as priorityStep, so nobody is starved.
func TestQueueOrder(t *testing.T) {
	a, b, c := arrival(0, 0), arrival(time.Second, 0), arrival(2*time.Second, 1)
	late := arrival(priorityStep+3*time.Second/2, 1) // after a, although it has a higher priority
	low := arrival(0, -1)
	q := queue{max: 8}
	for _, g := range []*generation{late, c, low, b, a} {
		if _, err := q.add(g); err != nil {
			t.Fatal(err)
		}
	}
	if want := []*generation{c, a, b, late, low}; !slices.Equal(q.waiting, want) {
		t.Errorf("the order is %v, want %v", q.waiting, want)
	}
	if !q.outranks(b) || q.outranks(c) || q.outranks(arrival(-time.Hour, 0)) {
		t.Error("the first waiting request outranks those of lower priority and higher rank only")
	}
}

// slowSteps makes each step take at least a millisecond, so that no processor generates a response before a test's next
// request arrives.
func slowSteps(l *Engine) {
	l.batcher.onStep = func([]batchItem) error { time.Sleep(time.Millisecond); return nil }
}

// A request of higher priority takes the slot of a running one, which then generates the rest of its tokens.
func TestPriorityPreempts(t *testing.T) {
	want := newOracle(t, "llama-default")
	l := cached(t, "llama-default", runtime.Options{Sequences: 2, PrefixCache: 1 << 20})
	slowSteps(l)
	const tokens = 100
	expect := want.want([]int32{4, 5, 6}, tokens)
	started := make(chan struct{}, 2)
	var wg sync.WaitGroup
	var ends sync.Map
	for i := range 2 {
		wg.Go(func() {
			var ids []int32
			for e, err := range l.Generate(t.Context(), runtime.Request{Prompt: []int32{4, 5, 6}, MaxTokens: tokens,
				IgnoreEOS: true}) {
				if err != nil {
					t.Error(err)
				}
				if ids = append(ids, e.IDs...); len(ids) == len(e.IDs) {
					started <- struct{}{}
				}
			}
			ends.Store(i, time.Now())
			if !slices.Equal(ids, expect) {
				t.Errorf("request %d: %v, want %v", i, ids, expect)
			}
		})
	}
	<-started
	<-started
	if _, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{7}, MaxTokens: 2,
		IgnoreEOS: true, Priority: 5}); err != nil {
		t.Error(err)
	}
	served := time.Now()
	wg.Wait()
	ends.Range(func(i, end any) bool {
		if end.(time.Time).Before(served) {
			t.Errorf("request %v, of lower priority, ended first", i)
		}
		return true
	})
}

func TestUrgencyBounds(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{})
	for _, r := range []runtime.Request{
		{Priority: runtime.MaxPriority + 1}, {Priority: -runtime.MaxPriority - 1}, {Deadline: -1},
	} {
		r.Prompt = []int32{4}
		if _, _, _, err := runtimetest.Collect(t.Context(), l, r); !errors.Is(err, runtime.ErrSampling) {
			t.Errorf("priority %d, deadline %v: %v", r.Priority, r.Deadline, err)
		}
	}
}

// A request ends at its deadline, and one that waits, too.
func TestDeadline(t *testing.T) {
	l := cached(t, "llama-default", runtime.Options{Sequences: 1})
	slowSteps(l)
	for range 2 {
		began := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, _, _, err := runtimetest.Collect(t.Context(), l, runtime.Request{Prompt: []int32{4, 5}, IgnoreEOS: true,
					Deadline: 20 * time.Millisecond, MaxTokens: 1 << 20})
				if !errors.Is(err, runtime.ErrDeadline) {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		}
		wg.Wait()
	}
}

// A full queue and a deadline that cannot be met say when to try again: after the prompts before, and a slot.
func TestFirstToken(t *testing.T) {
	g := arrival(0, 0)
	g.tokens = make([]int32, 100)
	q := queue{max: 2, slots: 1, waiting: []*generation{{tokens: make([]int32, 300)}}}
	q.counters.running = 1
	q.counters.work = workload{rows: 600, rate: 100}
	q.counters.work.addService(4 * time.Second)
	if d, want := q.firstToken(100, 1), 10*time.Second+2*4*time.Second; d != want {
		t.Errorf("the first token is expected in %v, want %v", d, want)
	}
	if d, want := q.firstToken(100, 4), 10*time.Second; d != want {
		t.Errorf("with free slots the first token is expected in %v, want %v", d, want)
	}
	g.started = time.Now()
	g.request.Deadline = 17 * time.Second
	after, ok := runtime.RetryAfter(q.check(g))
	if err := q.check(g); !errors.Is(err, runtime.ErrDeadline) || !ok || after != 18*time.Second {
		t.Errorf("a deadline of 17 s: %v, again after %v", err, after)
	}
	g.request.Deadline = 19 * time.Second
	if err := q.check(g); err != nil {
		t.Errorf("a deadline of 19 s: %v", err)
	}
	q.max = 1
	if err := q.check(g); !errors.Is(err, runtime.ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
	q.counters.work.addService(12 * time.Second)
	if q.counters.work.service != 5*time.Second {
		t.Errorf("requests take %v", q.counters.work.service)
	}
}

func TestGapLimit(t *testing.T) {
	p := gapLimit{max: 100 * time.Millisecond}
	if n := p.limit(1); n != initialGapRows-1 {
		t.Errorf("%d rows before the first measurement", n)
	}
	step := func(decoding int, d time.Duration) { p.add(p.limit(decoding), decoding, d) }
	measured := func(decoding int) { // 55 rows take gapShare of the gap
		step(decoding, 30*time.Millisecond+time.Duration(p.limit(decoding)+decoding)*time.Millisecond)
	}
	for range 30 {
		measured(3)
		if n := p.limit(3) + 3; n%gapMultiple != 0 || n < 32 || n > 56 {
			t.Errorf("%d rows, want a multiple of %d near 55", n, gapMultiple)
		}
	}
	p.add(3, 1, 10*time.Millisecond)
	if n := p.limit(3) + 3; n < 32 {
		t.Errorf("%d rows after the last rows of a prompt", n)
	}
	for range 20 {
		step(1, time.Second)
	}
	for decoding, want := range map[int]int{1: 7, 4: 4, 5: 11, 12: 4, 31: 9} {
		if n := p.limit(decoding); n != want {
			t.Errorf("%d rows beside %d on a slow machine, want %d", n, decoding, want)
		}
	}
	for range 100 {
		step(1, time.Microsecond)
	}
	if n := p.limit(1); n != maxRows-1 {
		t.Errorf("%d rows at most", n)
	}
	p.add(0, 1, time.Second)
	if n := p.limit(1); n != maxRows-1 {
		t.Errorf("%d rows after a step without a prompt", n)
	}
}

// A step whose duration is near the target is repeated: one of twice the rows would exceed the maximum.
func TestGapLimitIsStable(t *testing.T) {
	p := gapLimit{max: 150 * time.Millisecond}
	for n := range 50 {
		rows := p.limit(1) + 1
		p.add(rows-1, 1, time.Duration(rows)*10*time.Millisecond)
		if n > 5 && rows != 8 {
			t.Errorf("step %d has %d rows", n, rows)
		}
	}
}
