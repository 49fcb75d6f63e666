// Package work counts what computing for a request costs, ends it with the request, and keeps long computations from
// starving short ones.
//
// Contract:
//   - A computation has one Meter, which its goroutine alone uses, and calls Done at its end.
//   - A unit is about a nanosecond: reading a byte takes one or a few. What takes more than linear time spends what it
//     does, and everything spends at least each [Each] units, so that the context is seen within a millisecond.
//   - The package imports nothing of the project.
package work

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Each is how many units a Meter spends between two looks at its context.
const Each = 16 << 10

// ErrLimit is wrapped by the errors of a Meter whose limits are reached.
var ErrLimit = errors.New("too much work")

// Limits bound one computation. Zero means without a limit.
type Limits struct {
	Units int64
	Time  time.Duration // of computing, without the waits of a [Gate]
}

// Meter counts the work of one computation.
type Meter struct {
	ctx    context.Context
	limits Limits
	spent  int64
	left   int // until the next look
	seen   time.Time
	busy   time.Duration
	turn   turn
}

// Start begins a computation for a context, within the gate that it has joined. Done ends it.
func Start(ctx context.Context, l Limits) *Meter {
	return &Meter{ctx: ctx, limits: l, left: Each, seen: time.Now(), turn: turnOf(ctx)}
}

// Done ends the computation.
func (m *Meter) Done() { m.turn.leave() }

// Spend counts n units. It returns the context's error, or one that wraps ErrLimit.
func (m *Meter) Spend(n int) error {
	if m.left -= n; m.left > 0 {
		return nil
	}
	return m.Look()
}

// Look is what Spend does now and then: it looks at the context and the limits, and waits if others are to compute
// first.
func (m *Meter) Look() error {
	m.spent += int64(Each - m.left)
	m.left = Each
	now := time.Now()
	took := now.Sub(m.seen)
	m.seen = now
	m.busy += took
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if m.limits.Units > 0 && m.spent > m.limits.Units {
		return fmt.Errorf("%w: more than %d units", ErrLimit, m.limits.Units)
	}
	if m.limits.Time > 0 && m.busy > m.limits.Time {
		return fmt.Errorf("%w: more than %v of computing", ErrLimit, m.limits.Time)
	}
	waited, err := m.turn.use(m.ctx, took)
	if waited {
		m.seen = time.Now()
	}
	return err
}

// Spent returns the units so far.
func (m *Meter) Spent() int64 { return m.spent + int64(Each-m.left) }
