package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// DefaultAttempts is the default number of consecutive attempts without progress.
const DefaultAttempts = 6

// Delays of the exponential backoff.
const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 20 * time.Second
)

// Attempts is the retry budget of one operation: a number of consecutive failures, and a time for which its requests
// may be limited. Progress restores both. It is not safe for concurrent use.
type Attempts struct {
	c       *Client
	limit   int
	failed  int
	gained  int64 // bytes since the budget was last restored
	limited waiting.Allowance
	OnRetry func(err error) // called before each retry, but not while requests are limited; may be nil
}

// Attempts returns the retry budget of one operation in the repository.
func (r *Repository) Attempts() *Attempts {
	a := r.host.attempts()
	if r.once {
		a.limit = 1
	}
	return a
}

// wait waits, or returns the context's error if it ends first.
func (r *Repository) wait(ctx context.Context, d time.Duration) error { return r.host.c.Sleep(ctx, d) }

// Reset restores the budget after progress.
func (a *Attempts) Reset() { a.failed, a.gained, a.limited = 0, 0, waiting.Allowance{} }

// Progress is how many bytes restore a budget: a server must not be able to hold a transfer with a byte per request.
const Progress = 64 << 10

// Progress counts bytes of progress, and restores the budget after enough of them.
func (a *Attempts) Progress(n int64) {
	if a.gained += n; a.gained >= Progress {
		a.Reset()
	}
}

// Remain reports whether Backoff would wait after this error and return nil.
func (a *Attempts) Remain(err error) bool {
	if status := limitedBy(err); status != nil {
		return a.limit > 1 && a.limited.May(status.RetryAfter)
	}
	return Temporary(err) && a.failed+1 < a.limit
}

// Backoff waits before the next attempt and returns nil. It returns err at once if it is not temporary or the budget is
// spent.
func (a *Attempts) Backoff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if status := limitedBy(err); status != nil {
		return a.waitLimit(ctx, status, err)
	}
	if !Temporary(err) {
		return err
	}
	if a.failed++; a.failed >= a.limit {
		return err
	}
	if a.OnRetry != nil {
		a.OnRetry(err)
	}
	defer waiting.Pause(ctx)()
	return a.c.Sleep(ctx, a.delay(err))
}

// spentError is an error after which an operation has used its budget up. It is final for one that needed it: budgets
// must not multiply.
type spentError struct{ error }

func (e *spentError) Unwrap() error { return e.error }

// limitedBy returns the response that says that requests are limited, or nil if err is no such response.
func limitedBy(err error) *StatusError {
	var status *StatusError
	var spent *spentError
	if errors.As(err, &status) && verdict.Limited(status.Status, status.Code) && !errors.As(err, &spent) {
		return status
	}
	return nil
}

// waitLimit waits until the host that sent err takes requests again.
func (a *Attempts) waitLimit(ctx context.Context, status *StatusError, err error) error {
	if a.limit <= 1 || !a.limited.May(status.RetryAfter) {
		return err
	}
	return a.limited.Wait(ctx, a.c.gates.Of(status.origin), status.RetryAfter, a.c.Sleep)
}

// delay returns the exponential backoff with a jitter of 50%, or the registry's Retry-After plus a smaller jitter.
// Jitter keeps clients that failed together from retrying together.
func (a *Attempts) delay(err error) time.Duration {
	d := min(firstDelay<<min(a.failed-1, 10), maxDelay)
	var status *StatusError
	if errors.As(err, &status) && status.RetryAfter > 0 {
		return status.RetryAfter + rand.N(min(status.RetryAfter/3, maxDelay)+time.Millisecond)
	}
	return d/2 + rand.N(d)
}

// Retry calls once until it succeeds, its error is not temporary, or the attempts are spent.
func Retry[T any](ctx context.Context, a *Attempts, once func() (T, error)) (T, error) {
	for {
		v, err := once()
		if err == nil {
			return v, nil
		}
		if err = a.Backoff(ctx, err); err != nil {
			var none T
			return none, err
		}
	}
}

// Temporary reports whether the same request may succeed later.
func Temporary(err error) bool {
	var (
		status   *StatusError
		alert    tls.AlertError
		record   tls.RecordHeaderError
		dns      *net.DNSError
		path     *fs.PathError
		netErr   net.Error
		sent     *sendError
		redirect *redirectError
		spent    *spentError
	)
	switch {
	case errors.As(err, &spent):
		return false
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, syscall.ENOSPC), errors.Is(err, manifest.ErrNoSpace),
		errors.As(err, &path), errors.Is(err, manifest.ErrCorrupt), errors.Is(err, manifest.ErrBlobMissing),
		errors.As(err, &redirect), errors.Is(err, ErrPrivateAddress), errors.Is(err, ErrSkipped):
		return false
	case errors.Is(err, ErrCertificate), errors.Is(err, ErrPlainHTTP), errors.Is(err, ErrTLS),
		errors.Is(err, ErrClientCertificate), errors.Is(err, ErrNoRegistry),
		errors.As(err, &alert), errors.As(err, &record):
		return false
	case errors.Is(err, ErrInterrupted):
		return true
	case errors.As(err, &status):
		return VerdictOf("", err) == verdict.Retry && status.RetryAfter <= waiting.MaxHint
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.As(err, &netErr) && netErr.Timeout(),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		return true
	}
	return errors.As(err, &sent)
}

// Limited reports whether a server refused a request because there are too many, or until the credentials are renewed.
func Limited(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && (verdict.Limited(status.Status, status.Code) || status.RetryAfter > 0 ||
		errors.Is(status, ErrUnauthorized))
}

// VerdictOf returns what the error of a step means; it is empty if no status answered. That requests are limited may be
// said by the error code alone, whatever the status means otherwise.
func VerdictOf(step verdict.Step, err error) verdict.Verdict {
	var status *StatusError
	switch {
	case !errors.As(err, &status) || errors.Is(err, ErrInterrupted):
		return ""
	case verdict.Limited(status.Status, status.Code):
		return verdict.Retry
	}
	return verdict.Of(step, status.Status)
}

// Sleep waits, or returns the context's error if it ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
