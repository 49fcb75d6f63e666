package server

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"slices"
	"time"
)

// ServeHTTP implements http.Handler: what is around all routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w, patience: s.times.write}
	s.metrics.open.Add(1)
	defer func() {
		s.metrics.open.Add(-1)
		s.answered(a, r)
	}()
	defer s.recovered(a, r)
	if !s.guard.admit(a, r) {
		return
	}
	if s.stopping.Load() && !slices.Contains(open, r.URL.Path) {
		s.fail(a, r, errStopping)
		return
	}
	if r.Body != nil && r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.times.body)) // an answer to a test has none
		if !uploads(r) {
			b := &body{ReadCloser: http.MaxBytesReader(a, r.Body, s.opts.MaxBody), of: &s.bodies}
			defer b.free()
			r.Body = b
		}
	}
	s.mux.ServeHTTP(a, r)
}

// recovered makes a panic the error of its request.
func (s *Server) recovered(a *answer, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.opts.Log("%s %s: panic: %v\n%s", r.Method, clip(r.URL.Path), p, debug.Stack())
	s.fail(a, r, fmt.Errorf("the request failed by a fault of the program: %v", p))
}

// answer knows whether an answer has begun, and gives every write a time.
type answer struct {
	http.ResponseWriter
	patience time.Duration
	begun    bool
	status   int  // once it has begun
	broken   bool // the client takes no more
	// last adds an error to a stream, as its last message; nil: no stream has begun.
	last func(told) error
}

func (a *answer) begins(status int) {
	if !a.begun {
		a.begun, a.status = true, status
	}
}

func (a *answer) WriteHeader(status int) {
	a.begins(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	a.begins(http.StatusOK)
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.patience)) // an answer to a test has none
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Unwrap lets a ResponseController find what the answer is around.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// quiet is a log of connections that were cut, which is the clients' affair.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
