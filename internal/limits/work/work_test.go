package work

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx    context.Context
		limits Limits
		spend  int
		want   error
		text   string
	}{
		{t.Context(), Limits{}, 1 << 40, nil, ""},
		{t.Context(), Limits{Units: 2 * Each}, 2 * Each, nil, ""},
		{t.Context(), Limits{Units: 2 * Each}, 2*Each + 1, ErrLimit, "more than 32768 units"},
		{t.Context(), Limits{Time: 1}, Each, ErrLimit, "more than 1ns of computing"},
		{ended, Limits{}, Each, context.Canceled, ""},
	} {
		m := Start(c.ctx, c.limits)
		err := m.Spend(1)
		if err != nil {
			t.Errorf("%+v: at once: %v", c, err)
		}
		err = m.Spend(c.spend - 1)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) || m.Spent() != int64(c.spend) {
			t.Errorf("%+v: got %v after %d units", c, err, m.Spent())
		}
		m.Done()
	}
}

// A gate is driven by what computations say that they took, so its tests have no times.

// computation is one that waits in a goroutine of its own.
type computation struct {
	turn
	name   string
	passed chan string
}

type scene struct {
	*testing.T
	gate   *Gate
	passed chan string
}

func newScene(t *testing.T, turns int) scene { return scene{t, NewGate(turns), make(chan string, 100)} }

func (s scene) request(client, name string) *computation {
	return &computation{turnOf(s.gate.Join(s.Context(), client)), name, s.passed}
}

// compute lets a computation take some time, by two milliseconds, and fails unless it waits or not as told.
func (s scene) compute(c *computation, took time.Duration, waits bool) {
	s.Helper()
	s.gate.mu.Lock()
	before := len(s.gate.waiting)
	s.gate.mu.Unlock()
	done := make(chan bool)
	go func() {
		waited := false
		for ; took > 0; took -= longest {
			w, err := c.use(s.Context(), longest)
			if err != nil {
				s.Error(err)
			}
			waited = waited || w
		}
		if waited {
			c.passed <- c.name
			return
		}
		close(done)
	}()
	if !waits {
		<-done
		return
	}
	for n := before; n <= before; runtime.Gosched() {
		s.gate.mu.Lock()
		n = len(s.gate.waiting)
		s.gate.mu.Unlock()
	}
}

// order lets the one that has the turn leave, and then each that gets it, and returns their names.
func (s scene) order(first *computation, others ...*computation) (names []string) {
	last := first
	for range others {
		last.leave()
		name := <-s.passed
		names = append(names, name)
		last = others[slices.IndexFunc(others, func(c *computation) bool { return c.name == name })]
	}
	last.leave()
	if len(s.gate.clients) > 0 || len(s.gate.waiting) > 0 || s.gate.open != 1 {
		s.Errorf("the gate is not free: %+v", s.gate)
	}
	return names
}

// Short computations never wait, and long ones only for others.
func TestShortComputations(t *testing.T) {
	s := newScene(t, 1)
	long := s.request("a", "long")
	s.compute(long, 500*time.Millisecond, false)
	for range 10 {
		short := s.request("a", "short")
		s.compute(short, free-longest, false)
		short.leave()
	}
	other := s.request("b", "other")
	s.compute(other, free, true)
	if got := s.order(long, other); !slices.Equal(got, []string{"other"}) {
		t.Error(got)
	}
}

// The computations of a client that has many and long ones wait longer than another's.
func TestTurns(t *testing.T) {
	s := newScene(t, 1)
	first := s.request("many", "first")
	s.compute(first, 200*time.Millisecond, false)
	many := s.request("many", "many")
	s.compute(many, free, true)
	one := s.request("one", "one")
	s.compute(one, free, true)
	if got := s.order(first, many, one); !slices.Equal(got, []string{"one", "many"}) {
		t.Errorf("first of one client, then the other: %q", got)
	}
	s = newScene(t, 1)
	first = s.request("a", "first")
	s.compute(first, 20*time.Millisecond, false)
	late := s.request("a", "late") // it has computed before in its request
	late.of.busy = 300 * time.Millisecond
	s.compute(late, free, true)
	early := s.request("a", "early")
	s.compute(early, free, true)
	if got := s.order(first, late, early); !slices.Equal(got, []string{"early", "late"}) {
		t.Errorf("of one client: %q", got)
	}
}

// One that has its turn gives it to those who wait, after a slice, and waits for another.
func TestSlices(t *testing.T) {
	s := newScene(t, 1)
	first, second := s.request("a", "first"), s.request("b", "second")
	s.compute(first, free, false)
	s.compute(second, free, true)
	s.compute(first, slice-longest, false)
	go func() { _, _ = first.use(s.Context(), longest) }()
	if name := <-s.passed; name != "second" {
		t.Error(name)
	}
	second.leave()
}

// While the processors have other work, a turn is free again after a pause as long as it was.
func TestYield(t *testing.T) {
	s := newScene(t, 1)
	type pause struct {
		time.Duration
		end func()
	}
	pauses := make(chan pause, 10)
	s.gate.after = func(d time.Duration, end func()) { pauses <- pause{d, end} }
	one := s.request("a", "one")
	s.compute(one, free, false)
	done := s.gate.Yield()
	s.compute(one, slice, true) // for itself: nobody else waits
	p := <-pauses
	if p.Duration != slice {
		t.Errorf("a pause of %v, want %v", p.Duration, slice)
	}
	p.end()
	if name := <-s.passed; name != "one" {
		t.Error(name)
	}
	done()
	s.compute(one, 3*slice, false)
	defer s.gate.Yield()()
	one.leave()
	if s.gate.open != 0 {
		t.Error("a turn has no pause after its end")
	}
	(<-pauses).end()
	if s.gate.open != 1 {
		t.Error("the turn is lost")
	}
}

// A request that ends while it waits gives up its place, or the turn that it was given meanwhile.
func TestLeavingWhileWaiting(t *testing.T) {
	s := newScene(t, 1)
	first, second := s.request("a", "first"), s.request("a", "second")
	s.compute(first, free, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second.of.busy = free
	if waited, err := second.use(ctx, longest); !waited || !errors.Is(err, context.Canceled) || len(s.gate.waiting) > 0 {
		t.Errorf("%v, %v, %+v", waited, err, s.gate)
	}
	second.leave()
	first.leave()
	if s.gate.open != 1 || len(s.gate.clients) > 0 {
		t.Errorf("the gate is not free: %+v", s.gate)
	}
}
