package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/limits"
	"github.com/ingotml/ingot/runtime"
)

// Waiting requests get memory in order of arrival, unless they time out or the queue is full.
func TestPromptQueue(t *testing.T) {
	p := newPrompts(10, time.Minute)
	if p.queue != limits.PromptQueue {
		t.Errorf("queue length %d", p.queue)
	}
	all, err := p.Take(t.Context(), 100) // more than the total
	if err != nil {
		t.Fatal(err)
	}
	p.queue = 3
	order := make(chan int)
	for i, n := range []int64{8, 3, 1} { // the later ones would fit earlier, but must not overtake
		go func() {
			release, err := p.Take(context.Background(), n)
			if err != nil {
				t.Error(err)
			} else {
				defer release()
			}
			order <- i
		}()
		for p.waiting.Load() != int64(i+1) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond) // until it is in the semaphore's queue
	}
	_, err = p.Take(t.Context(), 1)
	if !errors.Is(err, runtime.ErrBusy) || !strings.Contains(err.Error(), "3 prompts are waiting") {
		t.Errorf("a fourth request: %v", err)
	}
	all()
	for want := range 3 {
		if got := <-order; got != want && want == 0 {
			t.Errorf("request %d is served as number %d", got, want)
		}
	}
	all, err = p.Take(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := p.Take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("expired context: %v", err)
	}
	p.wait = 5 * time.Millisecond
	if _, err := p.Take(t.Context(), 1); !errors.Is(err, runtime.ErrBusy) || !strings.Contains(err.Error(), "5ms") {
		t.Errorf("timeout: %v", err)
	}
	all()
	if n := p.waiting.Load(); n != 0 || !p.memory.TryAcquire(10) {
		t.Errorf("%d requests wait, or memory is still reserved", n)
	}
}
