package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

// call is a request for a repository or a file of one.
type call struct {
	what   string   // for errors
	url    *url.URL // never shown: it may be signed
	host   string   // of the name, which decides on the token
	ranges string   // value of Range; "" = the whole
	named  address.Class
	step   verdict.Step
	head   bool // ask for the header only
	bare   bool // send no token
}

// send sends a request and follows no redirect. The response's body fails when no byte arrives for a while.
func (c *Client) send(ctx context.Context, q call) (*http.Response, error) {
	gate := c.gates.Of(origin(q.url))
	if err := gate.Enter(ctx, c.opts.Sleep); err != nil {
		return nil, err
	}
	sent := time.Now()
	watch := c.use(q.host).timeouts.Watch(ctx, waiting.Response, 1)
	ctx = watch.Context()
	method := http.MethodGet
	if q.head {
		method = http.MethodHead
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url.String(), nil)
	if err != nil {
		watch.Stop()
		return nil, errors.New(q.what + ": the hub named an invalid address")
	}
	if req, err = c.restrict(req, q.named); err != nil {
		watch.Stop()
		return nil, fmt.Errorf("%s: %w", q.what, err)
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	req.Header.Set("Accept-Encoding", "identity")
	if q.ranges != "" {
		req.Header.Set("Range", q.ranges)
	}
	if token := c.tokenFor(q); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		err = watch.Cause(err)
		watch.Stop()
		return nil, fmt.Errorf("%s: %w", q.what, &sendError{redactAddress(err)})
	}
	c.reached.Store(true)
	c.limited(q, gate, sent, resp)
	watch.Body(waiting.Response)
	resp.Body = &watchedBody{watch.Reader(resp.Body), resp.Body, watch, q.what}
	if err := decode(resp); err != nil {
		discard(resp)
		return nil, fmt.Errorf("%s: %w", q.what, err)
	}
	return resp, nil
}

// limited closes the gate of a server that limits requests, and says so if that takes long.
func (c *Client) limited(q call, gate *waiting.Gate, sent time.Time, resp *http.Response) {
	if !verdict.Limited(resp.StatusCode, "") {
		gate.Passed(sent)
		return
	}
	hint, _ := verdict.Delay(resp.Header, time.Now())
	if wait := gate.Limited(sent, hint); wait > noticeDelay {
		c.opts.Notice(fmt.Sprintf("%s: the hub limits requests: waiting %s", q.what, wait.Round(time.Second)))
	}
}

// redactAddress removes the address from errors of the resolver and of connections, since a signed host is not for
// logs; the cause remains.
func redactAddress(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && op.Err != nil {
		return fmt.Errorf("connect: %w", op.Err)
	}
	return err
}

// watchedBody is a body that fails when it stalls.
type watchedBody struct {
	io.Reader
	body  io.Closer
	watch *waiting.Watch
	what  string
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, fmt.Errorf("%s: %w", b.what, &sendError{b.watch.Cause(err)})
}

func (b *watchedBody) Close() error {
	defer b.watch.Stop()
	return b.body.Close()
}

// follow sends a request and follows redirects, up to one that leads away from the origin of stay; nil = follows all.
// It returns the last response, whose body the caller closes, and the address of it.
func (c *Client) follow(ctx context.Context, q call, stay *url.URL) (*http.Response, call, error) {
	for n := 0; ; n++ {
		resp, err := c.sendEither(ctx, q)
		if err != nil {
			return nil, q, err
		}
		to, err := redirect(resp, q)
		if err != nil {
			discard(resp)
			return nil, q, err
		}
		if to == nil || stay != nil && origin(to) != origin(stay) {
			return resp, q, nil
		}
		discard(resp)
		if n == limits.HubRedirects {
			return nil, q, fmt.Errorf("%s: more than %d redirects", q.what, limits.HubRedirects)
		}
		q.url, q.named = to, c.named(q, to)
	}
}

// redirect returns the address that a response leads to, or nil.
func redirect(resp *http.Response, q call) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := q.url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host == "" || to.Scheme != "https" && to.Scheme != "http" {
		return nil, errors.New(q.what + ": the hub redirected to an invalid address")
	}
	if q.url.Scheme == "https" && to.Scheme == "http" {
		return nil, errors.New(q.what + ": the hub redirected away from TLS")
	}
	to.User = nil
	return to, nil
}

// discard drains a short body, so that the connection can be used again, and closes it.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}
