package work

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// free is what a request computes without a turn. Honest prompts take a fraction of it.
	free = 10 * time.Millisecond
	// slice is for how long a computation has its turn if others wait.
	slice = 50 * time.Millisecond
	// longest is what counts of the time between two looks: the rest is a pause of the program.
	longest = 2 * time.Millisecond
)

// Gate bounds the long computations that run at a time; they take turns. The next turn is of the one whose wait exceeds
// what it and its client have computed by most: a client with many long computations does not delay another's short
// one, and none waits for ever. Short computations never wait. While the processors have other work ([Gate.Yield]),
// each turn is followed by a pause of the same length.
type Gate struct {
	after func(time.Duration, func()) // calls a function later

	mu      sync.Mutex
	begun   time.Time
	open    int // turns that nobody has
	yields  int // calls of Yield that are not done
	waiting []*waiter
	clients map[string]*client
}

// client is who has long computations now.
type client struct {
	long int           // number of them
	busy time.Duration // since there was none
}

type waiter struct {
	order time.Duration // the least goes first
	turn  chan struct{} // closed when it has its turn
}

// NewGate returns a gate with that many turns at a time; 0: half as many as there are processors.
func NewGate(turns int) *Gate {
	if turns == 0 {
		turns = max(1, runtime.GOMAXPROCS(0)/2)
	}
	after := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	return &Gate{after: after, begun: time.Now(), open: turns, clients: map[string]*client{}}
}

// Yield says that the processors have other work, such as a model's, until done is called.
func (g *Gate) Yield() (done func()) {
	add := func(n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.yields += n
	}
	add(1)
	return func() { add(-1) }
}

type joined struct {
	gate   *Gate
	client string
	mu     sync.Mutex
	busy   time.Duration // of all computations of the request
}

type joinedKey struct{}

// Join returns a context whose computations are those of one request of a client, and pass the gate.
func (g *Gate) Join(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, joinedKey{}, &joined{gate: g, client: client})
}

// turn is a computation's place at the gate.
type turn struct {
	of   *joined // nil: there is no gate
	held bool
	long bool          // counts as one of its client's
	used time.Duration // since it last passed the gate
}

func turnOf(ctx context.Context) turn {
	of, _ := ctx.Value(joinedKey{}).(*joined)
	return turn{of: of}
}

// use counts what was computed, and waits for a turn if it is due.
func (t *turn) use(ctx context.Context, took time.Duration) (waited bool, err error) {
	if t.of == nil {
		return false, nil
	}
	took = min(took, longest)
	t.used += took
	t.of.mu.Lock()
	t.of.busy += took
	busy := t.of.busy
	t.of.mu.Unlock()
	if busy < free || t.held && t.used < slice {
		return false, nil
	}
	w := t.of.gate.pass(t, busy)
	if w == nil {
		return false, nil
	}
	select {
	case <-w.turn:
		return true, nil
	case <-ctx.Done():
		t.of.gate.drop(t, w)
		return true, ctx.Err()
	}
}

// pass gives a turn or the place of one who waits for it.
func (g *Gate) pass(t *turn, busy time.Duration) *waiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.clients[t.of.client]
	if c == nil {
		c = &client{}
		g.clients[t.of.client] = c
	}
	if !t.long {
		t.long = true
		c.long++
	}
	c.busy += t.used
	used := t.used
	t.used = 0
	if t.held && len(g.waiting) == 0 && g.yields == 0 {
		return nil
	}
	if t.held {
		g.takeBack(used)
	}
	t.held = true // or will, unless it is dropped
	w := &waiter{order: time.Since(g.begun) + busy + c.busy, turn: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.next()
	select {
	case <-w.turn:
		return nil
	default:
		return w
	}
}

// takeBack makes a turn free again, after a pause of the time used if someone needs the processors. The caller has
// locked mu, and calls next.
func (g *Gate) takeBack(used time.Duration) {
	if g.yields == 0 {
		g.open++
		return
	}
	g.after(used, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.open++
		g.next()
	})
}

// next gives turns to those who wait.
func (g *Gate) next() {
	for ; g.open > 0 && len(g.waiting) > 0; g.open-- {
		first := 0
		for i, w := range g.waiting {
			if w.order < g.waiting[first].order {
				first = i
			}
		}
		close(g.waiting[first].turn)
		g.waiting = slices.Delete(g.waiting, first, first+1)
	}
}

// drop takes back the place of one who waits no longer.
func (g *Gate) drop(t *turn, w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		t.held = false
	}
}

// leave ends a computation, which gives its turn back.
func (t *turn) leave() {
	if !t.long {
		return
	}
	g := t.of.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.held {
		g.takeBack(t.used)
		g.next()
	}
	if c := g.clients[t.of.client]; c.long > 1 {
		c.long--
	} else {
		delete(g.clients, t.of.client)
	}
	t.held, t.long = false, false
}
