package wire

import (
	"net/http"
	"time"
)

// Response records whether a response has started, and sets a deadline for each write.
type Response struct {
	http.ResponseWriter
	timeout time.Duration
	begun   bool
	status  int  // valid if begun
	broken  bool // a write failed
	// last sends an error as the last message of a stream; nil: no stream has started.
	last func(Error) error
}

// NewResponse returns a writer of a response to a client that must read each write within a timeout.
func NewResponse(w http.ResponseWriter, timeout time.Duration) *Response {
	return &Response{ResponseWriter: w, timeout: timeout}
}

// Sent returns the status of the response, or 0 if it has not started.
func (a *Response) Sent() int { return a.status }

func (a *Response) begin(status int) {
	if !a.begun {
		a.begun, a.status = true, status
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *Response) WriteHeader(status int) {
	a.begin(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *Response) Write(p []byte) (int, error) {
	a.begin(http.StatusOK)
	// This fails only for a test's ResponseWriter, which has no deadlines.
	_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Now().Add(a.timeout))
	n, err := a.ResponseWriter.Write(p)
	a.broken = a.broken || err != nil
	return n, err
}

// Unwrap supports http.ResponseController.
func (a *Response) Unwrap() http.ResponseWriter { return a.ResponseWriter }
