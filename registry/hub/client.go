package hub

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ingotml/ingot/registry/remote"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
)

const (
	defaultEndpoint   = "https://huggingface.co"
	defaultModelScope = "https://www.modelscope.cn"
	defaultMemory     = 64 << 20
	defaultAttempts   = 10
)

// Client reads repositories. It is safe for concurrent use.
type Client struct {
	opts      Options
	transport *http.Transport
	reached   atomic.Bool // a server has responded
	servers   servers
	gates     waiting.Gates // by origin

	hubUse, scopeUse use // of the two services

	hubToken, scopeToken token
	cacheNoted           sync.Once
	tokenNoted           sync.Once
}

// New returns a client.
func New(opts Options) *Client {
	opts.Endpoint = cmp.Or(opts.Endpoint, defaultEndpoint)
	opts.ModelScope = cmp.Or(opts.ModelScope, defaultModelScope)
	opts.Memory = cmp.Or(opts.Memory, defaultMemory)
	opts.UserAgent = cmp.Or(opts.UserAgent, "ingot")
	if opts.Sleep == nil {
		opts.Sleep = remote.Sleep
	}
	if opts.Notice == nil {
		opts.Notice = func(string) {}
	}
	c := &Client{opts: opts, transport: opts.Transport}
	c.setTokens(opts)
	c.hubUse.set(opts, opts.Endpoint)
	c.scopeUse.set(opts, opts.ModelScope)
	if c.transport == nil {
		c.transport = newTransport()
	}
	return c
}

// newTransport returns a transport for many ranges at a time. Each has a connection of its own: over one HTTP/2
// connection they would share a window.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: checkDial}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: 64,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 20 * time.Second,
		ReadBufferSize:      256 << 10,
		DisableCompression:  true, // ranges and hashes are of the bytes as stored
		Protocols:           http1(),
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// origin returns scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// endpoint returns the endpoint of a name's host.
func (c *Client) endpoint(host string) string {
	if host == ModelScope {
		return c.opts.ModelScope
	}
	return c.opts.Endpoint
}

// use is how a service is used.
type use struct {
	host     waiting.Host
	timeouts *waiting.Timeouts
	attempts int // consecutive ones without progress
}

func (u *use) set(opts Options, endpoint string) {
	var s settings.Host
	if at, err := url.Parse(endpoint); err == nil && opts.Setting != nil {
		s = opts.Setting(at.Host)
	}
	u.host.Timeout = cmp.Or(opts.Stall, s.Timeout)
	u.attempts = cmp.Or(opts.Attempts, s.Attempts, defaultAttempts)
	u.timeouts = u.host.New(0)
}

// use returns how the service of a name's host is used.
func (c *Client) use(host string) *use {
	if host == ModelScope {
		return &c.scopeUse
	}
	return &c.hubUse
}

// skipped tells that something that is not needed did not work. With [Options.Strict], that is an error.
func (c *Client) skipped(text string) error {
	if c.opts.Strict {
		return errors.New(text)
	}
	c.opts.Notice("warning: " + text)
	return nil
}

// temporary reports whether the same request may succeed later.
func temporary(err error) bool {
	var status *StatusError
	switch {
	case errors.Is(err, errPrivate):
		return false
	case errors.Is(err, errExpired), errors.Is(err, errBody):
		return true
	case errors.As(err, &status):
		return verdict.Of(status.step, status.Status) == verdict.Retry && status.retryAfter <= waiting.MaxHint
	}
	return remote.Temporary(err) || transportFailure(err)
}

// transportFailure reports a connection that failed in a way that [remote.Temporary] has no type for.
func transportFailure(err error) bool {
	var failed *sendError
	return errors.As(err, &failed) && !errors.Is(err, context.Canceled)
}

// sendError is a request without a response.
type sendError struct{ err error }

func (e *sendError) Error() string { return e.err.Error() }
func (e *sendError) Unwrap() error { return e.err }
