package wire

import (
	"context"
	"net/http"
	"time"

	"github.com/ingotml/ingot/server/budget"
)

// Response records whether a response has started. It is written a piece at a time, each of which the client must read
// within a time, so that a large response may take long if only it goes on.
type Response struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	ctx     context.Context // of the request
	begun   bool
	status  int  // valid if begun
	broken  bool // a write failed
	// last sends an error as the last message of a stream; nil: no stream has started.
	last func(Error) error
}

// pieceSize is how much of a response a client must read within the time.
const pieceSize = 256 << 10

// NewResponse returns a writer of a response to a client that must read each piece within a timeout.
func NewResponse(w http.ResponseWriter, timeout time.Duration) *Response {
	return &Response{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout,
		ctx: context.Background()}
}

// For sets the context of the request that the response is for. Its account counts the response.
func (a *Response) For(ctx context.Context) { a.ctx = ctx }

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
func (a *Response) Write(p []byte) (n int, err error) {
	a.begin(http.StatusOK)
	account := budget.From(a.ctx)
	for {
		piece := p[n:min(n+pieceSize, len(p))]
		// Deadlines fail only for a test's ResponseWriter, which has none.
		ready := func() { _ = a.control.SetWriteDeadline(time.Now().Add(a.timeout)) }
		cut := func() { _ = a.control.SetWriteDeadline(time.Now()) }
		m, err := account.Wait(ready, cut, func() (int, error) { return a.ResponseWriter.Write(piece) })
		n += m
		if err != nil {
			a.broken = true
			return n, err
		}
		if n >= len(p) {
			return n, nil
		}
	}
}

// Unwrap supports http.ResponseController.
func (a *Response) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// contextOf returns the context of the request that a response is for.
func contextOf(w http.ResponseWriter) context.Context {
	if a, ok := w.(*Response); ok {
		return a.ctx
	}
	return context.Background()
}
