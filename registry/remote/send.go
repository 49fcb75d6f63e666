package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// send sends a request once and returns any response. While the server limits requests, it waits before; a request to a
// mirror fails instead.
func (h *host) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", h.c.opts.UserAgent)
	gate := h.c.gates.Of(origin(req.URL))
	if h.mirror && gate.Remaining() > 0 {
		return nil, fmt.Errorf("%w: it limits requests", ErrInterrupted)
	}
	if err := gate.Enter(req.Context(), h.c.Sleep); err != nil {
		return nil, err
	}
	sent := time.Now()
	resp, err := h.watched(req)
	if err != nil {
		var refused *addressError
		if errors.As(err, &refused) {
			return nil, refused
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, &sendError{req.Method, redact.DisplayURL(req.URL), redact.URLSecrets(req.URL), tlsError(err)}
	}
	if resp.Request == nil {
		resp.Request = req
	}
	h.c.warnings(h.name, resp.Header)
	if !verdict.Limited(resp.StatusCode, peekCode(resp)) {
		gate.Passed(sent)
		return resp, nil
	}
	hint, _ := verdict.Delay(resp.Header, time.Now())
	if wait := gate.Limited(sent, hint); wait > 0 && !h.mirror && h.c.opts.Paused != nil {
		name := h.name
		if !h.owns(req.URL) {
			name = req.URL.Hostname()
		}
		h.c.opts.Paused(name, wait)
	}
	return resp, nil
}

// peekCode returns the error code of a response, if it has one, and leaves the body as it was.
func peekCode(resp *http.Response) string {
	if resp.StatusCode < http.StatusBadRequest || resp.Request.Method == http.MethodHead {
		return ""
	}
	body := resp.Body
	b, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // a partial body is better than none
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(b), body), body}
	return parseError(b).Code
}

// maxWait is what the wait for the response to a request for a document grows to, such as a manifest or a token.
const maxWait = 2 * time.Minute

// watched sends a request. If its context has no watch, it gets one, which also watches the body of the response.
func (h *host) watched(req *http.Request) (*http.Response, error) {
	if waiting.Of(req.Context()) != nil {
		return h.roundTrip(req)
	}
	w := h.small.Watch(req.Context(), waiting.Response, waiting.Factor(req.Method))
	sub := req.WithContext(w.Context())
	if req.Body != nil && req.Body != http.NoBody {
		sub.Body = &watchedBody{w.Reader(req.Body), req.Body.Close, w}
	}
	resp, err := h.roundTrip(sub)
	if err != nil {
		defer w.Stop()
		return nil, Interrupted(w, err)
	}
	h.small.Passed()
	w.Body(waiting.Response)
	resp.Request = req
	body := resp.Body
	resp.Body = &watchedBody{w.Reader(body), func() error {
		defer w.Stop()
		return body.Close()
	}, w}
	return resp, nil
}

// watchedBody is a body that a watch counts.
type watchedBody struct {
	io.Reader
	close func() error
	w     *waiting.Watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, Interrupted(b.w, err)
}

func (b *watchedBody) Close() error { return b.close() }

// Interrupted returns the error of a watched request: an [ErrInterrupted] if the watch ended it, the cause of its
// caller's context if that did, else err.
func Interrupted(w *waiting.Watch, err error) error {
	var stall *waiting.Stall
	if err = w.Cause(err); errors.As(err, &stall) {
		return fmt.Errorf("%w: %w", ErrInterrupted, stall)
	}
	return err
}

// Timeouts returns the timeouts of one operation's requests. Requests for documents have others.
func (r *Repository) Timeouts() *waiting.Timeouts { return r.host.waits.New(0) }

// Setting returns how a host is used.
func (c *Client) Setting(host string) (s settings.Host) {
	if c.opts.Setting != nil {
		s = c.opts.Setting(host)
	}
	s.Attempts = cmp.Or(s.Attempts, c.opts.Attempts)
	return s
}

// Setting returns how the registry is used.
func (r *Repository) Setting() settings.Host { return r.host.setting }
