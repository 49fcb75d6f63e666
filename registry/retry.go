package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

// DefaultAttempts is how often something is tried without any byte having moved in between.
const DefaultAttempts = 6

// How long to wait before the second attempt, and at most. A registry's Retry-After counts up to maxRetryAfter.
const (
	firstDelay    = 500 * time.Millisecond
	maxDelay      = 20 * time.Second
	maxRetryAfter = 5 * time.Minute
)

// attempts is the budget of one exchange: so many failures in a row. It belongs to one goroutine.
type attempts struct {
	c      *Client
	failed int
}

func (c *Client) attempts() *attempts { return &attempts{c: c} }

// moved says that bytes have moved: the budget is whole again.
func (a *attempts) moved() { a.failed = 0 }

// again waits before the next attempt and gives nil, or gives err back when it is final or the budget is spent.
func (a *attempts) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !temporary(err) {
		return err
	}
	if a.failed++; a.failed >= a.c.opts.Attempts {
		return err
	}
	delay := min(firstDelay<<(a.failed-1), maxDelay)
	delay = delay/2 + rand.N(delay) // clients that failed together come back apart
	var status *StatusError
	if errors.As(err, &status) && status.RetryAfter > 0 {
		delay = min(status.RetryAfter, maxRetryAfter)
	}
	return a.c.sleep(ctx, delay)
}

// temporary reports whether the same request may succeed later.
func temporary(err error) bool {
	var (
		status   *StatusError
		cert     *tls.CertificateVerificationError
		unknown  x509.UnknownAuthorityError
		dns      *net.DNSError
		path     *fs.PathError
		netErr   net.Error
		urlErr   *url.Error
		opErr    *net.OpError
		redirect *redirectError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, syscall.ENOSPC), errors.As(err, &path):
		return false
	case errors.Is(err, ErrInterrupted):
		return true
	case errors.As(err, &status):
		switch status.Status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	case errors.As(err, &cert), errors.As(err, &unknown), errors.As(err, &redirect):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE):
		return true
	case errors.As(err, &netErr) && netErr.Timeout():
		return true
	}
	return errors.As(err, &opErr) || errors.As(err, &urlErr)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
