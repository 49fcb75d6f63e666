package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ingotml/ingot/internal/limits/fault"
)

// ErrDeadline reports a request whose deadline has passed, or will pass before its first token.
var ErrDeadline = fault.Register(errors.New("the deadline is too early"), fault.Kind{
	Name: "runtime.ErrDeadline", Means: "a request's deadline has passed, or would pass before its first token",
	Rank: fault.Resource + 4, Status: fault.Unavailable, Wire: "late",
})

// RetryError is an error of a request that was refused because the model is busy.
type RetryError struct {
	Err   error         // ErrBusy or ErrDeadline, wrapped
	After time.Duration // when the model is expected to have less work
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// RetryAfter returns when to send a request again that failed with err, if err says so.
func RetryAfter(err error) (time.Duration, bool) {
	var e *RetryError
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.After, true
}

// WithDeadline returns a context that ends with ErrDeadline when a request's deadline passes. past is the time since
// the request's arrival. A deadline of 0 never passes.
func WithDeadline(ctx context.Context, deadline, past time.Duration) (context.Context, context.CancelFunc) {
	if deadline <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, deadline-past,
		fmt.Errorf("the response was not complete within %v: %w", deadline, ErrDeadline))
}

// CheckUrgency returns an error for a priority or deadline outside its range.
func (r *Request) CheckUrgency() error {
	if r.Priority < -MaxPriority || r.Priority > MaxPriority {
		return fmt.Errorf("priority is %d: must be between %d and %d: %w", r.Priority, -MaxPriority, MaxPriority,
			ErrSampling)
	}
	if r.Deadline < 0 {
		return fmt.Errorf("the deadline is %v: must not be negative: %w", r.Deadline, ErrSampling)
	}
	return nil
}
