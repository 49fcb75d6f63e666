package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Delays of the exponential backoff. The hub's limits are per five minutes; a longer delay is not waited for.
const (
	firstDelay    = 500 * time.Millisecond
	maxDelay      = 20 * time.Second
	maxRetryAfter = 6 * time.Minute
	firstLimited  = 5 * time.Second // after a rate limit without a hint; all attempts wait about six minutes
	maxLimited    = time.Minute
)

// unreachedAttempts bounds the attempts of a client that no server has responded to: its machine has no network, or a
// setting is wrong, which its user should learn soon.
const unreachedAttempts = 4

// wrongAttempts bounds the attempts that get a wrong answer from servers that work: waiting seldom changes it.
const wrongAttempts = 5

// attempts counts consecutive failures without progress. It is not safe for concurrent use.
type attempts struct {
	c      *Client
	what   string
	failed int
	wrong  int // of these, answers with another body than promised, and addresses that were refused
}

// progress restores the budget.
func (a *attempts) progress() { a.failed, a.wrong = 0, 0 }

// backoff waits before the next attempt and returns nil. It returns err at once if it is not temporary or the budget is
// spent.
func (a *attempts) backoff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !temporary(err) {
		return err
	}
	limit := a.c.opts.Attempts
	if !a.c.reached.Load() {
		limit = min(limit, unreachedAttempts)
	}
	expired := errors.Is(err, errExpired)
	if expired || errors.Is(err, errBody) {
		a.wrong++
	}
	if a.failed++; a.failed >= limit || a.wrong >= wrongAttempts {
		return fmt.Errorf("%w (after %d attempts)", err, a.failed)
	}
	if expired && a.failed == 1 {
		return nil // nothing to wait for
	}
	delay := min(firstDelay<<min(a.failed-1, 10), maxDelay)
	delay = delay/2 + rand.N(delay) // so that clients that failed together do not retry together
	var status *StatusError
	limited := errors.Is(err, ErrLimited)
	switch {
	case errors.As(err, &status) && status.retryAfter > 0:
		delay = status.retryAfter + rand.N(time.Second)
	case limited: // the hub's windows are of five minutes
		delay = min(firstLimited<<min(a.failed-1, 10), maxLimited) + rand.N(time.Second)
	}
	if delay > noticeDelay && (limited || status != nil && status.retryAfter > 0) {
		a.c.opts.Notice(fmt.Sprintf("%s: the hub limits requests: waiting %s", a.what, delay.Round(time.Second)))
	}
	return a.c.opts.Sleep(ctx, delay)
}

// noticeDelay is a wait that a user should know about.
const noticeDelay = 5 * time.Second
