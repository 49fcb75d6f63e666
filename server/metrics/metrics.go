package metrics

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// Metrics are the server's counters. Counting a response's pieces takes no locks.
type Metrics struct {
	open atomic.Int64 // requests being handled

	mu       sync.Mutex
	requests map[requestKey]int64
	models   map[string]*modelMetrics
}

// requestKey is the labels of a request's counter.
type requestKey struct {
	endpoint string
	status   int
}

// modelMetrics are the counters of a model. They outlive its process.
type modelMetrics struct {
	ends [len(ends)]atomic.Int64 // responses, by index of ends

	prompt, cached, tokens     atomic.Int64
	drafted, accepted, targets atomic.Int64

	first, next, load *histogram
}

// ends are the values of the label end: how a response ended.
var ends = [...]string{string(runtime.DoneStop), string(runtime.DoneLength), endCancelled, endError}

const (
	endCancelled = "cancelled"
	endError     = "error"
)

var (
	firstBounds = seconds(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)
	nextBounds  = seconds(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5)
	loadBounds  = seconds(.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)
)

// The number of models is limited, since clients can copy a model to any number of names. The others share one name.
const (
	maxMeasured = 256
	otherModels = "other"
)

// model returns the counters of a model.
func (m *Metrics) model(name string) *modelMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.models == nil {
		m.models = map[string]*modelMetrics{}
	}
	if m.models[name] == nil && len(m.models) >= maxMeasured {
		name = otherModels
	}
	c := m.models[name]
	if c == nil {
		c = &modelMetrics{
			first: newHistogram(firstBounds), next: newHistogram(nextBounds), load: newHistogram(loadBounds),
		}
		m.models[name] = c
	}
	return c
}

// Opened counts a request in progress until closed is called.
func (m *Metrics) Opened() (closed func()) {
	m.open.Add(1)
	return func() { m.open.Add(-1) }
}

// Loaded records how long loading a model took.
func (m *Metrics) Loaded(model string, d time.Duration) { m.model(model).load.observe(d) }

// Embedded counts the tokens of embedded texts.
func (m *Metrics) Embedded(model string, tokens int) { m.model(model).prompt.Add(int64(tokens)) }

// Request counts a request.
func (m *Metrics) Request(endpoint string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		m.requests = map[requestKey]int64{}
	}
	m.requests[requestKey{endpoint, status}]++
}

// responseMetrics records the metrics of one response.
type responseMetrics struct {
	of          *modelMetrics
	begun, last time.Time
	seen        runtime.Stats
}

// StartResponse starts to record a response of a model to a request that began then.
func (m *Metrics) StartResponse(model string, begun time.Time) *responseMetrics {
	if begun.IsZero() {
		begun = time.Now()
	}
	return &responseMetrics{of: m.model(model), begun: begun}
}

// Observe records an event of the response.
func (w *responseMetrics) Observe(e runtime.Event) {
	if len(e.IDs) > 0 {
		now := time.Now()
		if w.last.IsZero() {
			w.of.first.observe(now.Sub(w.begun))
		} else {
			w.of.next.observe(now.Sub(w.last))
		}
		w.last = now
	}
	for _, c := range []struct {
		to        *atomic.Int64
		now, seen int
	}{
		{&w.of.prompt, e.Stats.PromptTokens, w.seen.PromptTokens},
		{&w.of.cached, e.Stats.CachedTokens, w.seen.CachedTokens},
		{&w.of.tokens, e.Stats.Tokens, w.seen.Tokens},
		{&w.of.drafted, e.Stats.Drafted, w.seen.Drafted},
		{&w.of.accepted, e.Stats.Accepted, w.seen.Accepted},
		{&w.of.targets, e.Stats.TargetSteps, w.seen.TargetSteps},
	} {
		if c.now != c.seen {
			c.to.Add(int64(c.now - c.seen))
		}
	}
	w.seen = e.Stats
}

// Finish counts the response by how it ended. cancelled means that the client cancelled it.
func (w *responseMetrics) Finish(done runtime.DoneReason, cancelled bool) {
	end := string(done)
	switch {
	case end != "":
	case cancelled:
		end = endCancelled
	default:
		end = endError
	}
	if i := slices.Index(ends[:], end); i >= 0 {
		w.of.ends[i].Add(1)
	}
}
