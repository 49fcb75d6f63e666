package batch

import (
	"slices"
	"sync"
)

// queue holds the requests that wait to be admitted, and what the batcher publishes about the running ones. It is safe
// for concurrent use.
type queue struct {
	max   int // most waiting requests; constant
	slots int // requests in a batch; constant

	mu       sync.Mutex
	waiting  []*generation // by rank
	looping  bool          // the loop's goroutine is running
	counters batcherCounters
}

// batcherCounters is what the loop publishes about its requests.
type batcherCounters struct {
	running      int
	stateBytes   int64 // of the running requests
	steps        int64 // so far
	batchSizeSum int64 // over these steps
	work         workload
}

// insert adds a request after those of the same or a lower rank.
func (q *queue) insert(g *generation) {
	i, _ := slices.BinarySearchFunc(q.waiting, g, func(w, g *generation) int {
		if compareRanks(w, g) <= 0 {
			return -1
		}
		return 1
	})
	q.waiting = slices.Insert(q.waiting, i, g)
}

// outranks reports whether the first waiting request has a higher priority than g, and a lower rank.
func (q *queue) outranks(g *generation) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0 && q.waiting[0].request.Priority > g.request.Priority && compareRanks(q.waiting[0], g) < 0
}

// add inserts a request and reports whether the loop has to be started. It returns an error if check does.
func (q *queue) add(g *generation) (start bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.check(g); err != nil {
		return false, err
	}
	q.insert(g)
	start, q.looping = !q.looping, true
	return start, nil
}

// next removes and returns the first request if accept returns true for it; else nil.
func (q *queue) next(accept func(*generation) bool) *generation {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 || !accept(q.waiting[0]) {
		return nil
	}
	var g *generation
	g, q.waiting = q.waiting[0], q.waiting[1:]
	return g
}

// putBack inserts a preempted request.
func (q *queue) putBack(g *generation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.insert(g)
}

// removeCanceled removes and returns the requests whose context has ended.
func (q *queue) removeCanceled() (canceled []*generation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(g *generation) bool {
		if g.ctx.Err() == nil {
			return false
		}
		canceled = append(canceled, g)
		return true
	})
	return canceled
}

// countStep counts a step of the given batch size; 0 is none. It returns false, and the loop has to end, if no request
// runs or waits.
func (q *queue) countStep(running int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if running > 0 {
		q.counters.steps++
		q.counters.batchSizeSum += int64(running)
	}
	if running == 0 && len(q.waiting) == 0 {
		q.looping = false
		return false
	}
	return true
}

// publish sets the counters of the running requests.
func (q *queue) publish(running int, stateBytes int64, work workload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counters.running, q.counters.stateBytes, q.counters.work = running, stateBytes, work
}

// read returns the number of waiting requests and the counters.
func (q *queue) read() (waiting int, c batcherCounters) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.counters
}
