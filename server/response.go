package server

import (
	"net/http"
	"time"
)

// responseWriter records whether a response has started, and sets a deadline for each write.
type responseWriter struct {
	http.ResponseWriter
	timeout time.Duration
	begun   bool
	status  int  // valid if begun
	broken  bool // a write failed
	// last sends an error as the last message of a stream; nil: no stream has started.
	last func(apiError) error
}

func newResponseWriter(w http.ResponseWriter, timeout time.Duration) *responseWriter {
	return &responseWriter{ResponseWriter: w, timeout: timeout}
}

// sent returns the status of the response, or 0 if it has not started.
func (a *responseWriter) sent() int { return a.status }

func (a *responseWriter) begin(status int) {
	if !a.begun {
		a.begun, a.status = true, status
	}
}

func (a *responseWriter) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	// This fails only for a test's ResponseWriter, which has no deadlines.
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.timeout))
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Unwrap supports http.ResponseController.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }
