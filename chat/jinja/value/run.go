package value

import (
	"context"
	"errors"
	"math"
	"math/big"
	"time"

	"github.com/ingotml/ingot/internal/limits/work"
)

// Overhead is the estimated memory of a value in bytes: its interface in a list, and what it points to, without a
// string's bytes.
const Overhead = 48

// Run is what one render has used of its limits. Operations on values are its methods, so that they count.
type Run struct {
	meter    *work.Meter
	Limits   Limits
	Now      func() time.Time // clock of strftime_now
	steps    int64
	checked  int64 // value of steps at the last check of the context
	memory   int64
	depth    int
	maxDepth int // limit of depth
}

// NewRun returns a run within l, whose zero fields mean no more than 0. maxDepth bounds nested calls. A nil clock means
// time.Now. Done ends the run.
func NewRun(ctx context.Context, l Limits, maxDepth int, now func() time.Time) *Run {
	if now == nil {
		now = time.Now
	}
	return &Run{meter: work.Start(ctx, work.Limits{Time: l.Time}), Limits: l, maxDepth: maxDepth, Now: now}
}

// Done ends the run.
func (r *Run) Done() { r.meter.Done() }

// Tick counts a step.
func (r *Run) Tick() error {
	r.steps++
	if r.steps-r.checked > 1000 {
		return r.check()
	}
	return nil
}

func (r *Run) check() error {
	r.checked = r.steps
	if r.steps > r.Limits.Steps {
		return LimitError("more than %d steps", r.Limits.Steps)
	}
	return Look(r.meter)
}

// Look looks at a render's context and its time.
func Look(m *work.Meter) error {
	err := m.Look()
	if errors.Is(err, work.ErrLimit) {
		err = LimitError("%v", err)
	}
	return err
}

// AllocTimes counts n bytes of memory times.
func (r *Run) AllocTimes(n int, times int64) error {
	if n > 0 && times > math.MaxInt32*64/int64(n) {
		return LimitError("more than %d bytes of memory", r.Limits.Memory)
	}
	return r.Alloc(n * int(times))
}

// EnterCall counts a nested call. Each needs a matching LeaveCall.
func (r *Run) EnterCall() error {
	if r.depth++; r.depth > r.maxDepth {
		return &Error{Kind: "RecursionError", Message: "maximum recursion depth exceeded", is: ErrLimit}
	}
	return nil
}

// Alloc counts n bytes of memory.
func (r *Run) Alloc(n int) error {
	r.memory += int64(n)
	r.steps += int64(n) / 256
	if r.memory > r.Limits.Memory {
		return LimitError("more than %d bytes of memory", r.Limits.Memory)
	}
	return nil
}

// Most returns how many values an operation may make that would make n or, if that is negative, any number: one more
// than there is memory for, so that Alloc then fails.
func (r *Run) Most(n int64) int64 {
	most := max(0, r.Limits.Memory-r.memory)/Overhead + 1
	if n < 0 {
		return most
	}
	return min(n, most)
}

// Work counts n steps of an expensive operation. The next check enforces the limit.
func (r *Run) Work(n int) { r.steps += int64(n) }

// Steps returns the steps so far.
func (r *Run) Steps() int64 { return r.steps }

// bytesPerStep is how many bytes of a text an operation reads in about the time of a step.
const bytesPerStep = 16

// Read counts a pass over each value: over the bytes of a text or number, or the items of a sequence.
func (r *Run) Read(values ...Value) {
	for _, v := range values {
		r.steps += int64(length(v)) / bytesPerStep
	}
}

// length returns what a pass over a value reads, in bytes or items.
func length(v Value) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case *big.Int:
		return v.BitLen() / 8
	case *List:
		return len(v.Items)
	case *Tuple:
		return len(v.Items)
	case *Dict:
		return v.Len()
	}
	return 0
}

// readFast counts a pass over n bytes by an instruction that takes many at a time.
func (r *Run) readFast(n int) { r.steps += int64(n) / 256 }

// Square counts an operation on integers of a and b bits whose cost is the product of the lengths, and checks the
// limit.
func (r *Run) Square(a, b int) error {
	r.Work((a/64 + 1) * (b/64 + 1) / 32)
	return r.Tick()
}

// LeaveCall ends a call that EnterCall counted.
func (r *Run) LeaveCall() { r.depth-- }
