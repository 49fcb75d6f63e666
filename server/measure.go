package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/metrics"
	"github.com/ingotml/ingot/server/wire"
)

// statusGone counts requests whose clients disconnected before the response started. It is never sent.
const statusGone = 499

// countResponse counts a request under its route.
func (s *Server) countResponse(a *wire.Response, r *http.Request) {
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
	status := a.Sent()
	left := r.Context().Err() != nil && !errors.Is(context.Cause(r.Context()), wire.ErrStopping)
	if status == 0 || left && status >= http.StatusInternalServerError {
		status = statusGone
	}
	s.metrics.Request(pattern, status)
	keys.From(r.Context()).Count(status)
}

// SeesUsage reports whether a request may read what all clients use.
func (s *Server) SeesUsage(ctx context.Context) bool { return s.opts.Keys.Sees(keys.From(ctx)) }

// metricsTimeout limits the wait for models' processes. It is shorter than a scrape's timeout.
const metricsTimeout = 3 * time.Second

// getMetrics is GET /metrics. It omits the usage of a process that does not respond in time.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	if !s.SeesUsage(r.Context()) {
		return wire.Errorf(http.StatusForbidden, "the key may not read the metrics: its line in the server's file of keys "+
			"lacks metrics=1, which others have")
	}
	state := metrics.State{Version: s.opts.Version, Memory: s.opts.Memory, Keys: s.opts.Keys.States()}
	list := s.Loaded()
	state.Models = make([]metrics.ModelState, len(list))
	ctx, cancel := context.WithTimeout(r.Context(), metricsTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for i, m := range list {
		state.Models[i] = metrics.ModelState{Name: m.Name, Loaded: m.Loaded, Room: m.Size, Leases: m.Leases}
		wg.Go(func() { state.Models[i].Usage = Usage(ctx, m.Model) })
	}
	wg.Wait()
	w.Header().Set("Content-Type", metrics.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(s.metrics.Text(state)) // fails only if the client has disconnected
	return nil
}
