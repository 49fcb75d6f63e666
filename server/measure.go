package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"
)

// statusGone counts requests whose clients disconnected before the response started. It is never sent.
const statusGone = 499

// countResponse counts a request under its route.
func (s *Server) countResponse(a *responseWriter, r *http.Request) {
	pattern := r.Pattern
	if pattern == "" { // refused before routing
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
	status := a.sent()
	left := r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), errStopping)
	if status == 0 || left && status >= http.StatusInternalServerError {
		status = statusGone
	}
	s.metrics.request(pattern, status)
}

// metricsTimeout limits the wait for models' processes. It is shorter than a scrape's timeout.
const metricsTimeout = 3 * time.Second

// getMetrics is GET /metrics. It omits the usage of a process that does not respond in time.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	state := serverState{version: s.opts.Version, memory: s.opts.Memory}
	list := s.loaded()
	state.models = make([]modelState, len(list))
	ctx, cancel := context.WithTimeout(r.Context(), metricsTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range list {
		state.models[i] = modelState{name: m.Name, loaded: m.Loaded, room: m.Size, leases: m.Leases}
		wg.Go(func() { state.models[i].usage = usage(ctx, m.Model) })
	}
	wg.Wait()
	w.Header().Set("Content-Type", metricsType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(s.metrics.text(state)) // fails only if the client has disconnected
	return nil
}
