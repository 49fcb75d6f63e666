package batch

import (
	"fmt"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// workload is what the loop publishes for the prediction of first tokens.
type workload struct {
	rows    int           // rows until the first tokens of the running requests
	rate    prefillRate   // rows per second
	service time.Duration // from admission to the end of a request, smoothed; 0: none has ended yet
}

// addService records how long a request ran.
func (w *workload) addService(d time.Duration) {
	if w.service == 0 {
		w.service = d
	}
	w.service += (d - w.service) / 8
}

// firstToken predicts the time until the first token of a request with a prompt of the given length that arrives after
// all others: it waits for their prompts, and for a slot if none is free. It is 0 before the first measurement. slots
// is the number of requests in a batch.
func (q *queue) firstToken(prompt, slots int) time.Duration {
	rows := q.counters.work.rows + prompt
	for _, g := range q.waiting {
		rows += len(g.tokens)
	}
	var d time.Duration
	if rate := q.counters.work.rate; rate > 0 {
		d = time.Duration(float64(rows) / float64(rate) * float64(time.Second))
	}
	if excess := q.counters.running + len(q.waiting) + 1 - slots; excess > 0 {
		d += time.Duration(float64(q.counters.work.service) * float64(excess) / float64(slots))
	}
	return d
}

// check returns an error if the queue cannot take a request, or if its first token would come after its deadline.
func (q *queue) check(g *generation) error {
	after := q.firstToken(len(g.tokens), q.slots)
	if len(q.waiting) >= q.max {
		return &runtime.RetryError{After: after,
			Err: fmt.Errorf("%d requests wait for the model: %w", len(q.waiting), runtime.ErrBusy)}
	}
	left := g.request.Deadline - time.Since(g.started)
	if g.request.Deadline > 0 && after > left {
		return &runtime.RetryError{After: after, Err: fmt.Errorf("the first token is expected in %v, after the deadline: %w",
			after.Round(time.Millisecond), runtime.ErrDeadline)}
	}
	return nil
}
