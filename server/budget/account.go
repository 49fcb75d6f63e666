package budget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
)

// errCut ends a request that was cut.
var errCut = fmt.Errorf("its client neither sent nor read while others waited for the memory that it holds: %w",
	runtime.ErrBusy)

// progress is how many bytes a client must send or read for its time to begin anew.
const progress = 16 << 10

// Account is what a request holds of a budget until it ends. All methods accept nil, for work that nothing counts.
type Account struct {
	of   *Budget
	name string

	mu   sync.Mutex
	held int64
	over bool // the request has ended

	// The client is waited for since then; the times before it without progress; and how to end the wait.
	since   time.Time
	blocked time.Duration
	moved   int
	cut     func() // nil: the client is not waited for
	isCut   bool
}

// Open returns the account of a request of a client. The caller calls Close when the request has ended.
func (b *Budget) Open(client string) *Account { return &Account{of: b, name: client} }

type contextKey struct{}

// With returns a context with the account of its request.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// From returns the account of a context's request, or nil.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(contextKey{}).(*Account)
	return a
}

// Client returns the name of the request's client, or "".
func (a *Account) Client() string {
	if a == nil {
		return ""
	}
	return a.name
}

// Most returns how many bytes a request can hold at most.
func (a *Account) Most() int64 { return a.of.o.Total / (limits.ClientShare + 1) * limits.ClientShare }

// Take takes n bytes more until the request ends, and waits if necessary.
func (a *Account) Take(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	if err := a.of.take(ctx, a.name, a, n); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += n
	return nil
}

// Close returns what the request holds.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	n := a.held
	a.held, a.over = 0, true
	a.mu.Unlock()
	if n > 0 {
		a.of.give(a.name, a, n)
	}
}

// Wait calls f, which waits for the client to send or read, and returns how many bytes it did. First it calls ready. If
// the request is cut meanwhile, it calls cut, which is to end f, and returns errCut.
func (a *Account) Wait(ready, cut func(), f func() (int, error)) (int, error) {
	if a == nil {
		ready()
		return f()
	}
	a.mu.Lock()
	if a.isCut {
		a.mu.Unlock()
		return 0, errCut
	}
	ready() // not after cut
	a.since, a.cut = time.Now(), cut
	a.mu.Unlock()
	n, err := f()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut = nil
	a.blocked += time.Since(a.since)
	if a.moved += n; a.moved >= progress {
		a.moved, a.blocked = 0, 0
	}
	if a.isCut && err != nil {
		err = errCut
	}
	return n, err
}

// idle returns how long the client has been waited for without progress.
func (a *Account) idle(now time.Time) (d time.Duration, held int64, isCut bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut != nil {
		d = a.blocked + now.Sub(a.since)
	}
	return d, a.held, a.isCut
}

// Cut ends the wait for the client. The request returns what it holds when it has ended.
func (a *Account) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cut != nil && !a.isCut && !a.over {
		a.isCut = true
		a.cut()
	}
}
