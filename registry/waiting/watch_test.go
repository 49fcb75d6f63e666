package waiting

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends returns how long a watch lets a request go on that something happens to, and why it ended it; nil after an hour.
func ends(t *testing.T, w *Watch, happens func()) (time.Duration, error) {
	t.Helper()
	began := time.Now()
	var other sync.WaitGroup
	if happens != nil {
		other.Go(happens)
	}
	defer other.Wait()
	select {
	case <-w.Context().Done():
	case <-time.After(time.Hour):
	}
	defer w.Stop()
	if w.Context().Err() == nil {
		return time.Since(began), nil
	}
	return time.Since(began), w.Cause(w.Context().Err())
}

func TestWatch(t *testing.T) {
	// drip moves n bytes after each of these intervals.
	drip := func(w *Watch, n int64, every time.Duration) func() {
		return func() {
			for w.Context().Err() == nil {
				time.Sleep(every)
				w.Moved(n)
			}
		}
	}
	for _, c := range []struct {
		what    string
		timeout time.Duration
		happens func(w *Watch) func()
		ends    time.Duration // 0: after an hour it has not
		says    string
	}{
		{"no response", 0, nil, 30 * time.Second, "no response for 30s"},
		{"no response, with a timeout", 5 * time.Second, nil, 5 * time.Second, "no response for 5s"},
		{"header and nothing", 0, func(w *Watch) func() { w.Body(Body); return nil }, 10 * time.Second, "no data for 10s"},
		{"header late and nothing", 0, func(w *Watch) func() {
			return func() { time.Sleep(20 * time.Second); w.Body(Body) }
		}, 60 * time.Second, "no data for 40s"}, // 20 s of silence were good, so twice as long is waited
		{"a byte every nine seconds", 0, func(w *Watch) func() { w.Body(Body); return drip(w, 1, 9*time.Second) },
			10 * time.Second, "too slow: 1 bytes in 10s"},
		{"600 bytes a second", 0, func(w *Watch) func() { w.Body(Body); return drip(w, 600, time.Second) }, 0, ""},
		{"25 kB in bursts", 0, func(w *Watch) func() { w.Body(Body); return drip(w, 25000*8, 8*time.Second) }, 0, ""},
		{"paused", 0, func(w *Watch) func() {
			return func() {
				time.Sleep(20 * time.Second)
				w.Pause()
				w.Pause()
				time.Sleep(time.Minute)
				w.Resume()
				w.Resume()
			}
		}, 90 * time.Second, "no response for 30s"},
		{"stops reading", 0, func(w *Watch) func() { w.Send(Body); return nil }, 10 * time.Second, "no byte taken for 10s"},
		{"no response to a body", 0, func(w *Watch) func() { w.Sent(Response, Write); return nil }, 5 * time.Minute,
			"no response for 5m0s"},
		{"no response to a body, with a timeout", time.Minute, func(w *Watch) func() { w.Sent(Response, Write); return nil },
			10 * time.Minute, "no response for 10m0s"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &Host{Timeout: c.timeout}
				w := h.New(0).Watch(t.Context(), Response, 1)
				var happens func()
				if c.happens != nil {
					happens = c.happens(w)
				}
				after, err := ends(t, w, happens)
				if c.ends == 0 {
					if err != nil {
						t.Errorf("after %s: %v", after, err)
					}
					return
				}
				var stall *Stall
				if !errors.As(err, &stall) || !strings.Contains(err.Error(), c.says) || after != c.ends {
					t.Errorf("after %s, want %s: %v", after, c.ends, err)
				}
			})
		})
	}
}

// TestTimeoutsGrow: each stall of an operation doubles the wait, once for requests that stall together, up to a bound;
// a request that passes takes one back. A timeout does not grow.
func TestTimeoutsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{}
		p := h.New(0)
		for _, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
			var last time.Duration
			others := []*Watch{p.Watch(t.Context(), Response, 1), p.Watch(t.Context(), Response, 1)}
			last, _ = ends(t, p.Watch(t.Context(), Response, 1), nil)
			synctest.Wait()
			for _, w := range others {
				w.Stop()
			}
			if last != want*time.Second {
				t.Errorf("%s, want %ds", last, want)
			}
		}
		p.Passed()
		if got, _ := p.wait(Body, 1); got != 320*time.Second {
			t.Errorf("after one passed: %s", got)
		}
		if got, _ := h.New(0).wait(Body, 1); got != Body {
			t.Errorf("another operation: %s", got)
		}
		if got, _ := h.New(2*time.Minute).wait(Response, Write); got != 5*time.Minute {
			t.Errorf("a write with a low bound: %s", got)
		}
		fixed := (&Host{Timeout: time.Minute}).New(0)
		for range 3 {
			if got, _ := ends(t, fixed.Watch(t.Context(), Response, 1), nil); got != time.Minute {
				t.Errorf("with a timeout: %s", got)
			}
		}
	})
}

// TestCause: the reason of the caller's context goes before a stall, and a request that failed keeps its error.
func TestCause(t *testing.T) {
	why := errors.New("somebody else failed")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := (&Host{}).New(0).Watch(ctx, time.Hour, 1)
	defer w.Stop()
	if w.Cause(nil) != nil || w.Cause(io.EOF) != io.EOF {
		t.Error("the request's own error is lost")
	}
	cancel(why)
	if got := w.Cause(io.EOF); got != why {
		t.Error(got)
	}
	if Of(w.Context()) != w || Of(Without(w.Context())) != nil || Without(ctx) != ctx {
		t.Error("the context has another watch")
	}
	Pause(ctx)()
}

// TestFactor: only what changes something at the server is waited for longer.
func TestFactor(t *testing.T) {
	for method, want := range map[string]int{"GET": 1, "HEAD": 1, "POST": Write, "PATCH": Write, "PUT": Write,
		"DELETE": Write} {
		if got := Factor(method); got != want {
			t.Errorf("%s: %d, want %d", method, got, want)
		}
	}
}
