package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// Delays of the exponential backoff.
const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 20 * time.Second
)

// unreachedAttempts bounds the attempts of a client that no server has responded to: its machine has no network, or a
// setting is wrong, which its user should learn soon.
const unreachedAttempts = 4

// wrongAttempts bounds the attempts that get a wrong answer from servers that work: waiting seldom changes it.
const wrongAttempts = 5

// attempts counts consecutive failures without progress, and how long requests were limited. It is not safe for
// concurrent use.
type attempts struct {
	c       *Client
	what    string
	host    string // of the name
	failed  int
	wrong   int // of these, answers with another body than promised, and addresses that were refused
	gained  int // bytes since the budget was restored
	limited waiting.Allowance
}

// progress counts bytes, and restores the budget after enough of them.
func (a *attempts) progress(n int) {
	if a.gained += n; a.gained >= remote.Progress {
		a.failed, a.wrong, a.gained, a.limited = 0, 0, 0, waiting.Allowance{}
	}
}

// backoff waits before the next attempt and returns nil. It returns err at once if it is not temporary or the budget is
// spent.
func (a *attempts) backoff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	limit := a.c.use(a.host).attempts
	var status *StatusError
	responded := errors.As(err, &status)
	if responded && verdict.Limited(status.Status, "") {
		if limit <= 1 || !a.limited.May(status.retryAfter) {
			return err
		}
		return a.limited.Wait(ctx, a.c.gates.Of(status.origin), status.retryAfter, a.c.opts.Sleep)
	}
	if !temporary(err) {
		return err
	}
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
	if responded && status.retryAfter > 0 {
		delay = status.retryAfter + rand.N(time.Second)
		if delay > noticeDelay {
			a.c.opts.Notice(fmt.Sprintf("%s: the hub is busy: waiting %s", a.what, delay.Round(time.Second)))
		}
	}
	return a.c.opts.Sleep(ctx, delay)
}

// noticeDelay is a wait that a user should know about.
const noticeDelay = 5 * time.Second
