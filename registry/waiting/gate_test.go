package waiting

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/internal/limits"
)

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// window is a server that takes a number of requests in each window of time.
type window struct {
	mu       sync.Mutex
	length   time.Duration
	rate, in int
	begun    time.Time
	refused  int
}

func (s *window) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.begun) > s.length {
		s.begun, s.in = now, 0
	}
	s.in++
	if s.in > s.rate {
		s.refused++
	}
	return s.in <= s.rate
}

// TestGate: ten transfers get through a server that takes 100 requests a minute and gives no hint, in little more time
// than that takes, with few refusals.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &window{length: time.Minute, rate: 100, begun: time.Now()}
		var g Gate
		var group sync.WaitGroup
		began := time.Now()
		for range 10 {
			group.Go(func() {
				for done := 0; done < 50; {
					if err := g.Enter(t.Context(), sleep); err != nil {
						t.Error(err)
						return
					}
					sent := time.Now()
					time.Sleep(10 * time.Millisecond)
					if server.take() {
						g.Passed(sent)
						done++
					} else {
						g.Limited(sent, 0)
					}
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took > 8*time.Minute { // four full windows are needed
			t.Errorf("500 requests took %s", took)
		}
		if server.refused > 200 {
			t.Errorf("%d refusals", server.refused)
		}
	})
}

func TestGateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		limited := func(sent time.Time, hint, want time.Duration) {
			t.Helper()
			if got := g.Limited(sent, hint); got != want {
				t.Errorf("closed for %s, want %s", got, want)
			}
		}
		first := time.Now()
		time.Sleep(time.Millisecond)
		limited(time.Now().Add(-time.Microsecond), 0, time.Second)
		limited(first, 0, 0)                           // sent before: says the same
		limited(first, 40*time.Second, 40*time.Second) // but knows more
		limited(first, 40*time.Second, 0)              // that is known by now
		limited(first, 2500*time.Second, 0)            // milliseconds
		if got := g.Remaining(); got != 40*time.Second {
			t.Errorf("remains closed for %s", got)
		}
		for _, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
			time.Sleep(time.Millisecond)
			sent := time.Now()
			time.Sleep(time.Millisecond)
			limited(sent, 0, want*time.Second)
		}
		if err := g.Enter(t.Context(), sleep); err != nil || g.Remaining() != 0 {
			t.Errorf("after the wait: %v, %s", err, g.Remaining())
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupted")
		g.Limited(time.Now().Add(time.Millisecond), time.Minute)
		cancel(why)
		if err := g.Enter(ctx, sleep); err != why {
			t.Error(err)
		}
	})
}

// TestGatePausesWatch: the time at a gate is no stall.
func TestGatePausesWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		g.Limited(time.Now(), 4*time.Minute)
		w := (&Host{}).New(0).Watch(t.Context(), Response, 1)
		defer w.Stop()
		if err := g.Enter(w.Context(), sleep); err != nil {
			t.Error(err)
		}
		if after, _ := ends(t, w, nil); after != Response {
			t.Errorf("then %s", after)
		}
	})
}

// TestGates: each host has its own gate, and a registry that leads to very many hosts takes no more memory.
func TestGates(t *testing.T) {
	var g Gates
	if a := g.Of("a"); g.Of("a") != a || g.Of("b") == a {
		t.Error("gates are mixed up")
	}
	for i := range 2 * limits.NamedHosts {
		g.Of(fmt.Sprint(i))
	}
	if len(g.of) > limits.NamedHosts+1 || g.Of("new") != g.Of("other") {
		t.Errorf("%d gates", len(g.of))
	}
}
