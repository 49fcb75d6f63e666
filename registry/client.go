package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
)

// DefaultConcurrency is how many blobs move at a time.
const DefaultConcurrency = 5

// Options are a client's. The zero value is what most people need.
type Options struct {
	Keychain    authn.Keychain    // nil: docker's config.json and credential helpers, then podman's
	PlainHTTP   bool              // no TLS; loopback addresses have none unless Insecure or CAFile is given
	Insecure    bool              // certificates are not checked
	CAFile      string            // PEM file of authorities to trust beside the system's
	Concurrency int               // blobs at a time; 0: DefaultConcurrency
	Attempts    int               // of one exchange without progress; 0: DefaultAttempts
	UserAgent   string            // empty: ingot
	Transport   http.RoundTripper // nil: one of the client's own, with the environment's proxies
	Events      func(Event)       // may be nil
}

// Client talks to registries. Its methods may be called from any goroutine.
type Client struct {
	opts  Options
	http  http.RoundTripper
	sleep func(context.Context, time.Duration) error

	mu    sync.Mutex
	hosts map[string]*host

	events sync.Mutex
}

// New makes a client. The only errors are those of Options.CAFile.
func New(opts Options) (*Client, error) {
	if opts.Keychain == nil {
		opts.Keychain = authn.DefaultKeychain
	}
	if opts.Concurrency <= 0 {
		opts.Concurrency = DefaultConcurrency
	}
	if opts.Attempts <= 0 {
		opts.Attempts = DefaultAttempts
	}
	if opts.UserAgent == "" {
		opts.UserAgent = "ingot"
	}
	c := &Client{opts: opts, http: opts.Transport, sleep: sleep, hosts: map[string]*host{}}
	if c.http == nil {
		t, err := newTransport(opts)
		if err != nil {
			return nil, err
		}
		c.http = t
	}
	return c, nil
}

// newTransport differs from the standard one in its connections for each host, since many blobs move at once, and in buffers
// for large bodies.
func newTransport(opts Options) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   20 * time.Second,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        256 << 10,
		WriteBufferSize:       256 << 10,
		DisableCompression:    true, // digests are of the bytes as they are stored
	}
	if opts.Insecure || opts.CAFile != "" {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: opts.Insecure} // --insecure asks for it
	}
	if opts.CAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := os.ReadFile(opts.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read certificate authorities: %s holds no certificate in PEM form", opts.CAFile)
		}
		t.TLSClientConfig.RootCAs = pool
	}
	return t, nil
}

// scheme is https but for loopback addresses and where the caller asks for none.
func (c *Client) scheme(host string) string {
	if c.opts.PlainHTTP || isLoopback(host) && !c.opts.Insecure && c.opts.CAFile == "" {
		return "http"
	}
	return "https"
}

func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback()
}

// tell passes an event on, one at a time.
func (c *Client) tell(e Event) {
	if c.opts.Events == nil {
		return
	}
	c.events.Lock()
	defer c.events.Unlock()
	c.opts.Events(e)
}
