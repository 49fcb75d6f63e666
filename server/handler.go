package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/ingotml/ingot/internal/limits/conns"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/holds"
	"github.com/ingotml/ingot/server/keys"
	"github.com/ingotml/ingot/server/page"
	"github.com/ingotml/ingot/server/wire"
)

// ServeHTTP implements http.Handler: what all routes share.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := wire.NewResponse(w, s.times.write)
	closed := s.metrics.Opened()
	defer func() {
		closed()
		s.countResponse(a, r)
	}()
	defer func() { s.recoverPanic(a, r, recover()) }()
	defer connection(r).Use(conns.Waiting)()
	if endsConnection(r) {
		a.Header().Set("Connection", "close")
	}
	if r.ContentLength != 0 { // also for what is refused: net/http reads the rest of a body before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.times.header))
	}
	public := s.isPublic(r)
	open := public || page.Serves(r)
	refuse := func(t wire.Error) { s.dialects.Refuse(a, r, t) }
	key, accepted := s.guard.Check(a, r, open, refuse)
	if !accepted {
		return
	}
	ctx, end := holds.With(keys.With(r.Context(), key))
	defer end()
	r, account := s.account(r.WithContext(ctx), key)
	defer account.Close()
	a.For(r.Context())
	if s.stopping.Load() && !public {
		s.fail(a, r, wire.ErrStopping)
		return
	}
	begin := key.Begin
	if r.Method != http.MethodPost { // it is no work for a model
		begin = func() (func(), error) { return func() {}, nil }
	}
	if !open {
		done, err := s.hold(r)
		if err != nil {
			s.fail(a, r, err)
			return
		}
		defer done()
	}
	s.route(a, r, begin)
}

// handle serves a request that did not come over the network.
func (s *Server) handle(a *wire.Response, r *http.Request, begin func() (done func(), err error)) {
	closed := s.metrics.Opened()
	defer func() {
		closed()
		s.countResponse(a, r)
	}()
	defer func() { s.recoverPanic(a, r, recover()) }()
	s.route(a, r, begin)
}

// route serves a request that may be served. begin admits it.
func (s *Server) route(a *wire.Response, r *http.Request, begin func() (done func(), err error)) {
	done, err := begin()
	if err != nil {
		s.fail(a, r, err)
		return
	}
	defer done()
	if err := s.boundBody(a, r); err != nil {
		s.fail(a, r, err)
		return
	}
	s.mux.ServeHTTP(a, r)
}

// boundBody sets the limits of a request's body.
func (s *Server) boundBody(a *wire.Response, r *http.Request) error {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	// This fails only for a test's ResponseWriter, which has no deadlines.
	_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(time.Now().Add(s.times.body))
	if s.isUpload(r) {
		err := wire.Plain(r)
		if err != nil {
			a.Header().Set("Accept-Encoding", "identity")
		}
		return err
	}
	return wire.Bound(a, r, s.opts.MaxBody)
}

// recoverPanic turns a panic into an error of its request.
func (s *Server) recoverPanic(a *wire.Response, r *http.Request, p any) {
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.opts.Log("%s: panic: %v\n%s", title(r), p, debug.Stack())
	s.fail(a, r, fmt.Errorf("internal error: %v", p))
}

// title names a request in the log, and whose it is.
func title(r *http.Request) string {
	text := r.Method + " " + wire.Clip(r.URL.Path)
	if key := keys.From(r.Context()); key != nil {
		text += " (key " + key.String() + ")"
	}
	return text
}

// fail sends an error to the client.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	cause := context.Cause(r.Context())
	if errors.Is(cause, wire.ErrStopping) {
		err = cause
	}
	t := wire.ErrorOf(err)
	// Client errors are not logged, and some others are logged elsewhere.
	if t.Status >= http.StatusInternalServerError && cause == nil && !errors.Is(err, runtime.ErrBusy) {
		s.opts.Log("%s: %s", title(r), t.Message)
	}
	s.dialects.Fail(w, r, t)
}

// discardLog returns a logger that drops net/http's messages, which are about clients' broken connections.
func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

// Owner returns whose files, batches and responses a request may use: the owner of its key, or "".
func Owner(ctx context.Context) string { return keys.From(ctx).Owner() }

// cacheOwner returns the owner of what caches keep of a request: requests of other owners do not find it.
func (s *Server) cacheOwner(ctx context.Context) string {
	if s.opts.ShareCache {
		return ""
	}
	return Owner(ctx)
}

// Do runs a request as if its owner had sent it, but regardless of how many requests the owner's key may run at once:
// those of its clients go first. Errors are those of the context only.
func (s *Server) Do(ctx context.Context, owner string, q batches.Request) (batches.Response, error) {
	if err := s.yield(ctx); err != nil {
		return batches.Response{}, err
	}
	key := s.opts.Keys.Owned(owner)
	within, end := holds.With(keys.With(ctx, key))
	defer end()
	r, err := http.NewRequestWithContext(within, http.MethodPost, q.URL, bytes.NewReader(q.Body))
	if err != nil {
		return batches.Response{}, err
	}
	r.Header.Set("Content-Type", wire.JSONType)
	r, account := s.account(r, key)
	defer account.Close()
	reply := &memoryWriter{header: http.Header{}}
	a := wire.NewResponse(reply, s.times.write)
	a.For(r.Context())
	s.handle(a, r, func() (done func(), err error) {
		if done, err = key.Begin(); err == nil {
			done() // it is within the limits, and does not count
		}
		return func() {}, err
	})
	out := batches.Response{Status: a.Sent(), ID: NewID("req_"), Body: reply.body.Bytes()}
	if seconds, err := time.ParseDuration(reply.header.Get("Retry-After") + "s"); err == nil {
		out.RetryAfter = seconds
	}
	return out, ctx.Err()
}

// yieldEvery is how often work without a client looks whether it keeps clients waiting.
const yieldEvery = 50 * time.Millisecond

// yield waits while requests wait for memory for their models: a model in use is not unloaded for them.
func (s *Server) yield(ctx context.Context) error {
	for s.pool.Waiting() > 0 {
		select {
		case <-time.After(yieldEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// memoryWriter keeps a response. It has no deadlines.
type memoryWriter struct {
	header http.Header
	body   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) Write(p []byte) (int, error) { return w.body.Write(p) }
func (w *memoryWriter) WriteHeader(int)             {}
func (w *memoryWriter) Flush()                      {}
