package budget

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

// testBudget has 100 bytes.
func testBudget() *Budget {
	return New(Options{Total: 100, What: "the test", Wait: 10 * time.Second, Queue: 8, IdleTimeout: 5 * time.Second})
}

// take takes memory for a request of a client.
func take(t *testing.T, b *Budget, client string, n int64) *Account {
	t.Helper()
	a := b.Open(client)
	if err := a.Take(t.Context(), n); err != nil {
		t.Errorf("%s takes %d: %v", client, n, err)
	}
	return a
}

// empty checks that nothing is held.
func empty(t *testing.T, b *Budget) {
	t.Helper()
	if b.Held() != 0 || b.Waiting() != 0 || len(b.clients) != 0 {
		t.Errorf("%d bytes held, %d wait, %d clients", b.Held(), b.Waiting(), len(b.clients))
	}
}

// A client holds at most its share beside others, and always finds room if it holds nothing.
func TestShare(t *testing.T) {
	for _, c := range []struct {
		name string
		held map[string]int64 // in this order of names
		by   string
		n    int64
		want error
	}{
		{"all", nil, "a", 100, nil},
		{"more than all", nil, "a", 1000, runtime.ErrBusy},
		{"a second request", map[string]int64{"a": 30}, "a", 45, nil},
		{"beyond the share", map[string]int64{"a": 30}, "a", 46, ErrShare},
		{"beside others", map[string]int64{"a": 30, "b": 40}, "a", 0, nil},
		{"beside those with more", map[string]int64{"a": 10, "b": 60}, "a", 12, nil},
		{"others hold it", map[string]int64{"a": 10, "b": 60}, "a", 25, runtime.ErrBusy},
		{"a newcomer", map[string]int64{"a": 75}, "b", 25, nil},
		{"a newcomer that needs more", map[string]int64{"a": 75}, "b", 26, runtime.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testBudget()
				var held []*Account
				for name, n := range c.held {
					held = append(held, take(t, b, name, n))
				}
				a := b.Open(c.by)
				if err := a.Take(t.Context(), c.n); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				a.Close()
				for _, x := range held {
					x.Close()
				}
				empty(t, b)
			})
		})
	}
}

// Requests that wait are served in the order of what their clients hold, and then of their arrival; large ones are not
// overtaken. A full queue, a context and the time end the wait.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget()
		first, second := take(t, b, "first", 60), take(t, b, "second", 40)
		order := make(chan string, 10)
		wait := func(name string, n int64) {
			go func() {
				release, err := b.Take(With(context.Background(), b.Open(name)), n)
				if err != nil {
					t.Error(err)
					return
				}
				order <- fmt.Sprint(name, n)
				release()
			}()
			synctest.Wait()
		}
		wait("third", 80)
		wait("second", 90)
		wait("fourth", 95)
		first.Close()
		second.Close()
		synctest.Wait()
		for _, want := range []string{"third80", "second90", "fourth95"} {
			if got := <-order; got != want {
				t.Errorf("%s was served, want %s", got, want)
			}
		}
		all := take(t, b, "all", 100)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("expired context: %v", err)
		}
		if _, err := b.Take(t.Context(), 1); !errors.Is(err, runtime.ErrBusy) ||
			!strings.Contains(err.Error(), "within 10s") {
			t.Errorf("timeout: %v", err)
		}
		for i := range 8 {
			wait(fmt.Sprint(i), 1)
		}
		if _, err := b.Take(t.Context(), 1); !errors.Is(err, runtime.ErrBusy) ||
			!strings.Contains(err.Error(), "8 requests") {
			t.Errorf("a full queue: %v", err)
		}
		all.Close()
		synctest.Wait()
		empty(t, b)
	})
}

// One client cannot take all places of the queue.
func TestQueueIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget()
		all := take(t, b, "all", 100)
		failed := make(chan error, 20)
		for range 8 {
			go func() { failed <- b.Open("many").Take(t.Context(), 1) }()
		}
		synctest.Wait()
		if n := b.Waiting(); n != 6 { // three times what it leaves
			t.Errorf("%d requests of one client wait", n)
		}
		go func() {
			a := b.Open("other")
			defer a.Close()
			if err := a.Take(t.Context(), 1); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		all.Close()
		for range 8 {
			<-failed
		}
	})
}

// While others wait, requests whose clients neither send nor read are cut, and no others.
func TestIdleClients(t *testing.T) {
	if limits.ClientIdle != 5 {
		t.Error("the limit of this test is another one")
	}
	for _, c := range []struct {
		name  string
		each  time.Duration // the client sends or reads a step after each
		step  int
		wants bool // somebody waits for memory
		other bool // who waits is another client
		cut   bool
	}{
		{"idle, others wait", time.Hour, 1, true, true, true},
		{"idle, its own others wait", time.Hour, 1, true, false, true},
		{"idle, nobody waits", time.Hour, 1, false, false, false},
		{"drops", 4 * time.Second, 1, true, true, true},
		{"slow", 4 * time.Second, progress, true, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testBudget()
				slow, ended := take(t, b, "slow", 70), make(chan error, 1)
				go func() {
					defer slow.Close()
					for range 3 {
						cut := make(chan struct{})
						_, err := slow.Wait(func() {}, func() { close(cut) }, func() (int, error) {
							select {
							case <-time.After(c.each):
								return c.step, nil
							case <-cut:
								return 0, errors.New("i/o timeout")
							}
						})
						if err != nil {
							ended <- err
							return
						}
					}
					ended <- nil
				}()
				time.Sleep(4 * time.Second)
				name := "slow"
				if c.other {
					name = "other"
				}
				if c.wants {
					a := b.Open(name)
					if err := a.Take(t.Context(), 60); err != nil {
						t.Error(err)
					}
					a.Close()
				}
				if err := <-ended; errors.Is(err, errCut) != c.cut {
					t.Errorf("%v, want cut: %v", err, c.cut)
				}
				if _, err := slow.Wait(func() {}, func() {}, func() (int, error) { return 0, nil }); c.cut && err != errCut {
					t.Errorf("after the cut: %v", err)
				}
				synctest.Wait()
				empty(t, b)
			})
		})
	}
}

// Work that nobody counts has no account.
func TestNoAccount(t *testing.T) {
	a := From(t.Context())
	err := a.Take(t.Context(), 1<<40)
	n, failed := a.Wait(func() {}, nil, func() (int, error) { return 3, nil })
	a.Close()
	if err != nil || n != 3 || failed != nil || a.Client() != "" {
		t.Errorf("%v, %d, %v, %q", err, n, failed, a.Client())
	}
}
