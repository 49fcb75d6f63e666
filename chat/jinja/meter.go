package jinja

import (
	"context"
	"math"
	"time"
)

// valueSize is the estimated memory of a value in bytes: its interface in a list, and what it points to, without a
// string's bytes.
const valueSize = 48

// run is what one render has used of its limits. Operations on values are its methods, so that they count.
type run struct {
	ctx      context.Context
	limits   Limits
	now      func() time.Time // clock of strftime_now
	steps    int64
	checked  int64 // value of steps at the last check of the context
	memory   int64
	depth    int
	maxDepth int // limit of depth
}

// newRun returns a run within l, whose zero fields mean no more than 0. maxDepth bounds nested calls. A nil clock means
// time.Now.
func newRun(ctx context.Context, l Limits, maxDepth int, now func() time.Time) *run {
	if now == nil {
		now = time.Now
	}
	return &run{ctx: ctx, limits: l, maxDepth: maxDepth, now: now}
}

// tick counts a step.
func (r *run) tick() error {
	r.steps++
	if r.steps-r.checked > 1000 {
		return r.check()
	}
	return nil
}

func (r *run) check() error {
	r.checked = r.steps
	if r.steps > r.limits.Steps {
		return limitError("more than %d steps", r.limits.Steps)
	}
	return r.ctx.Err()
}

func (r *run) allocTimes(n int, times int64) error {
	if n > 0 && times > math.MaxInt32*64/int64(n) {
		return limitError("more than %d bytes of memory", r.limits.Memory)
	}
	return r.alloc(n * int(times))
}

// enterCall counts a nested call. Each needs a matching leaveCall.
func (r *run) enterCall() error {
	if r.depth++; r.depth > r.maxDepth {
		return &Error{Kind: "RecursionError", Message: "maximum recursion depth exceeded", is: ErrLimit}
	}
	return nil
}

// alloc counts n bytes of memory.
func (r *run) alloc(n int) error {
	r.memory += int64(n)
	r.steps += int64(n) / 256
	if r.memory > r.limits.Memory {
		return limitError("more than %d bytes of memory", r.limits.Memory)
	}
	return nil
}

// work counts n steps of an expensive operation. The next check enforces the limit.
func (r *run) work(n int) { r.steps += int64(n) }

func (r *run) leaveCall() { r.depth-- }
