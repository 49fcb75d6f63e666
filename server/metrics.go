package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/runtime"
)

// metrics count what a server does. The parts of an answer are counted without locks.
type metrics struct {
	open atomic.Int64 // requests that are being answered

	mu       sync.Mutex
	requests map[asked]int64
	models   map[string]*modelMetrics
}

// asked is a kind of requests: what they asked for, and how that went.
type asked struct {
	endpoint string
	status   int
}

// modelMetrics are those of a model, whether it is loaded or not.
type modelMetrics struct {
	ends [len(ends)]atomic.Int64 // answers

	prompt, cached, tokens     atomic.Int64
	drafted, accepted, targets atomic.Int64

	first, next, load *histogram
}

// ends are how answers end.
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

// otherModels are those beyond so many: clients may copy models under any number of names.
const (
	maxMeasured = 256
	otherModels = "other"
)

// model gives the counts of a model.
func (m *metrics) model(name string) *modelMetrics {
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
		c = &modelMetrics{first: newHistogram(firstBounds), next: newHistogram(nextBounds), load: newHistogram(loadBounds)}
		m.models[name] = c
	}
	return c
}

// request counts a request.
func (m *metrics) request(endpoint string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests == nil {
		m.requests = map[asked]int64{}
	}
	m.requests[asked{endpoint, status}]++
}

// statusGone is the status of requests whose clients left before an answer began; none is sent.
const statusGone = 499

// answered counts a request by the route that it went to.
func (s *Server) answered(a *answer, r *http.Request) {
	pattern := r.Pattern
	if pattern == "" { // it was refused before
		_, pattern = s.mux.Handler(r)
	}
	if _, path, ok := strings.Cut(pattern, " "); ok {
		pattern = path
	}
	switch pattern {
	case "/{$}":
		pattern = "/"
	case "/", "":
		pattern = "none"
	}
	status := a.status
	left := r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), errStopping)
	if status == 0 || left && status >= http.StatusInternalServerError {
		status = statusGone
	}
	s.metrics.request(pattern, status)
}

// watch follows one answer of a model.
type watch struct {
	of          *modelMetrics
	begun, last time.Time
	seen        runtime.Stats
}

func (m *metrics) watch(model string, begun time.Time) *watch {
	if begun.IsZero() {
		begun = time.Now()
	}
	return &watch{of: m.model(model), begun: begun}
}

// saw counts a part of the answer.
func (w *watch) saw(e runtime.Event) {
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

// ended counts the answer, by why it ended. cancelled says that nobody wanted the rest.
func (w *watch) ended(done runtime.DoneReason, cancelled bool) {
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
