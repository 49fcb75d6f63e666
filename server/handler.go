package server

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"time"
)

// ServeHTTP implements http.Handler: what all routes share.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &responseWriter{ResponseWriter: w, timeout: s.times.write}
	s.metrics.open.Add(1)
	defer func() {
		s.metrics.open.Add(-1)
		s.countResponse(a, r)
	}()
	defer s.recoverPanic(a, r)
	if !s.guard.check(a, r) {
		return
	}
	if s.stopping.Load() && !s.guard.isPublic(r) {
		s.fail(a, r, errStopping)
		return
	}
	if r.Body != nil && r.ContentLength != 0 {
		// This fails only for a test's ResponseWriter, which has no deadlines.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.times.body))
		if !s.isUpload(r) {
			b := &body{ReadCloser: http.MaxBytesReader(a, r.Body, s.opts.MaxBody), of: &s.bodies}
			defer b.release()
			r.Body = b
		}
	}
	s.mux.ServeHTTP(a, r)
}

// recoverPanic turns a panic into an error of its request.
func (s *Server) recoverPanic(a *responseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.opts.Log("%s %s: panic: %v\n%s", r.Method, clip(r.URL.Path), p, debug.Stack())
	s.fail(a, r, fmt.Errorf("internal error: %v", p))
}

// discardLog returns a logger that drops net/http's messages, which are about clients' broken connections.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
