package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/fault"
	"github.com/ingotml/ingot/runtime"
)

// ErrShare reports that a client's other requests hold the memory that one client may have.
var ErrShare = fault.Register(errors.New("the client's other requests hold its share of the server's memory"),
	fault.Kind{
		Name: "server/budget.ErrShare", Means: "a client's other requests hold the memory that one client may have",
		Rank: fault.Resource + 12, Status: fault.TooMany, Code: fault.CodeRate,
	})

// Options describe a budget.
type Options struct {
	Total int64         // bytes
	What  string        // the memory is for, as errors say it
	Wait  time.Duration // of a request that finds no room
	Queue int           // requests that wait
	// IdleTimeout is how long a client may neither send nor read while others wait for what it holds.
	IdleTimeout time.Duration
}

// Budget is memory that requests share.
type Budget struct {
	o Options

	mu      sync.Mutex
	free    int64
	dirty   int64              // was given back since the process last returned memory to the system
	clients map[string]*client // that hold or wait for something
	queue   []*waiter          // first come first
}

// client is what a client holds.
type client struct {
	name     string
	held     int64
	waiting  int
	accounts map[*Account]struct{} // that hold something
}

type waiter struct {
	by      *client
	n       int64
	granted chan struct{} // closed when the memory is taken
}

// New returns a budget.
func New(o Options) *Budget {
	return &Budget{o: o, free: o.Total, clients: map[string]*client{}}
}

// Total returns the bytes of the budget.
func (b *Budget) Total() int64 { return b.o.Total }

// Held returns the bytes that requests hold.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.o.Total - b.free
}

// Waiting returns how many requests wait.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// large is a release after which the memory is returned to the system, before another request allocates as much. So is
// the memory of many releases once nothing is held.
const large = 64 << 20

// Take takes n bytes for the client of the context's request, and waits if necessary. More than the total is the total.
// The caller calls release once.
func (b *Budget) Take(ctx context.Context, n int64) (release func(), err error) {
	name := From(ctx).Client()
	n = min(n, b.o.Total)
	if err := b.take(ctx, name, nil, n); err != nil {
		return nil, err
	}
	return func() {
		b.give(name, nil, n)
	}, nil
}

// of returns a client. The caller has locked mu.
func (b *Budget) of(name string) *client {
	c := b.clients[name]
	if c == nil {
		c = &client{name: name, accounts: map[*Account]struct{}{}}
		b.clients[name] = c
	}
	return c
}

// forget removes a client that has nothing. The caller has locked mu.
func (b *Budget) forget(c *client) {
	if c.held == 0 && c.waiting == 0 {
		delete(b.clients, c.name)
	}
}

// take takes memory, for an account unless it is nil.
func (b *Budget) take(ctx context.Context, name string, a *Account, n int64) error {
	b.mu.Lock()
	c := b.of(name)
	defer func() {
		b.forget(c)
		b.mu.Unlock()
	}()
	if free := b.o.Queue - len(b.queue); len(b.queue) > 0 && (free < 1 || c.waiting >= limits.ClientShare*free) {
		return fmt.Errorf("%d requests are waiting for memory: %w", len(b.queue), runtime.ErrBusy)
	}
	w := &waiter{by: c, n: n, granted: make(chan struct{})}
	b.queue = append(b.queue, w)
	c.waiting++
	b.grant()
	var err error
	if !isClosed(w.granted) {
		b.mu.Unlock()
		err = b.wait(ctx, w)
		b.mu.Lock()
	}
	if isClosed(w.granted) { // perhaps while the wait ended
		if a != nil {
			c.accounts[a] = struct{}{}
		}
		return nil
	}
	c.waiting--
	b.queue = slices.DeleteFunc(b.queue, func(x *waiter) bool { return x == w })
	own := !fits(c.held, n, b.free) && 2*c.held >= b.o.Total-b.free // it holds more than all others
	b.grant()                                                       // it may have held up others
	switch {
	case err != nil:
		return err
	case own:
		return fmt.Errorf("no memory for %s within %v: %w; read their answers, or send fewer at once", b.o.What, b.o.Wait,
			ErrShare)
	}
	return fmt.Errorf("no memory for %s within %v: %w", b.o.What, b.o.Wait, runtime.ErrBusy)
}

// wait waits until memory was granted, the context ends with an error, or the time is over. Meanwhile, others that only
// wait for their clients are cut.
func (b *Budget) wait(ctx context.Context, w *waiter) error {
	late := time.NewTimer(b.o.Wait)
	defer late.Stop()
	look := time.NewTicker(max(b.o.IdleTimeout/4, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-w.granted:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return nil
		case now := <-look.C:
			b.cutIdle(w, now)
		}
	}
}

// cutIdle cuts requests that have waited too long for their clients, the longest first, until there would be room.
func (b *Budget) cutIdle(w *waiter, now time.Time) {
	type idle struct {
		*Account
		of   *client
		time time.Duration
		held int64
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []idle
	held, free := w.by.held, b.free
	for _, c := range b.clients {
		for a := range c.accounts {
			switch time, has, isCut := a.idle(now); {
			case isCut: // it is about to end
				free += has
				if c == w.by {
					held -= has
				}
			case time >= b.o.IdleTimeout:
				list = append(list, idle{a, c, time, has})
			}
		}
	}
	slices.SortFunc(list, func(a, b idle) int { return cmp.Compare(b.time, a.time) })
	for _, x := range list {
		if w.n <= free && fits(held, w.n, free) {
			return
		}
		x.Cut()
		free += x.held
		if x.of == w.by {
			held -= x.held
		}
	}
}

// give returns memory that was taken.
func (b *Budget) give(name string, a *Account, n int64) {
	if n >= large {
		debug.FreeOSMemory() // before the next one gets it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.of(name)
	c.held -= n
	b.free += n
	if b.dirty += n; n >= large {
		b.dirty = 0
	}
	if b.free == b.o.Total && b.dirty >= large {
		b.dirty = 0
		go debug.FreeOSMemory()
	}
	if a != nil {
		delete(c.accounts, a)
	}
	b.forget(c)
	b.grant()
}

// fits reports whether a client that holds some bytes may have n more of those that are free.
func fits(held, n, free int64) bool { return held == 0 || held+n <= limits.ClientShare*(free-n) }

// grant gives memory to those who wait: to the client with the least first, so that it need not outrun others, and to
// nobody who would exceed its share. The caller has locked mu.
func (b *Budget) grant() {
	for {
		first := -1
		for i, w := range b.queue {
			if fits(w.by.held, w.n, b.free) && (first < 0 || w.by.held < b.queue[first].by.held) {
				first = i
			}
		}
		if first < 0 || b.queue[first].n > b.free {
			return
		}
		w := b.queue[first]
		b.queue = slices.Delete(b.queue, first, first+1)
		b.free -= w.n
		w.by.held += w.n
		w.by.waiting--
		close(w.granted)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
