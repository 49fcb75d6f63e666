package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	Keychain     authn.Keychain    // nil: docker's config.json and credential helpers, then podman's
	IdentityFile string            // OpenSSH key that Ollama's registries know the user by; empty: $INGOT_SSH_KEY, then ~/.ollama/id_ed25519
	Mirrors      []Mirror          // nil: those of $INGOT_MIRRORS, as ParseMirrors reads them
	PlainHTTP    bool              // no TLS; loopback addresses have none unless Insecure or CAFile is given
	Insecure     bool              // the certificates of hosts that names carry are not checked; those of others are
	CAFile       string            // PEM file of authorities to trust beside the system's
	Concurrency  int               // blobs at a time; 0: DefaultConcurrency
	Attempts     int               // of one exchange without progress; 0: DefaultAttempts
	UserAgent    string            // empty: ingot
	Transport    http.RoundTripper // nil: the client's own, with the environment's proxies

	// Private reports whether a host that a name carries may be at an address that is not public; nil: all may. It is for
	// callers who act for others. Mirrors may be anywhere. With a Transport, only addresses that need no resolver are checked.
	Private func(host string) bool

	Events func(Event) // may be nil
}

// Client talks to registries. Its methods may be called from any goroutine.
type Client struct {
	opts  Options
	http  http.RoundTripper // Options.Transport; nil where net is not
	net   *network
	sleep func(context.Context, time.Duration) error
	tune  tuning // how blobs are fetched

	mu     sync.Mutex
	hosts  map[string]*host
	warned map[string]bool

	events sync.Mutex
}

// New makes a client. The only errors are those of Options.CAFile and INGOT_MIRRORS.
func New(opts Options) (*Client, error) {
	if opts.Keychain == nil {
		opts.Keychain = defaultKeychain
	}
	if opts.Concurrency <= 0 {
		opts.Concurrency = DefaultConcurrency
	}
	if opts.Attempts <= 0 {
		opts.Attempts = DefaultAttempts
	}
	opts.UserAgent = cmp.Or(opts.UserAgent, "ingot")
	if opts.Mirrors == nil {
		mirrors, err := ParseMirrors(os.Getenv(MirrorsEnv))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", MirrorsEnv, err)
		}
		opts.Mirrors = mirrors
	}
	c := &Client{opts: opts, http: opts.Transport, sleep: sleep, tune: defaultTuning, hosts: map[string]*host{}, warned: map[string]bool{}}
	if c.http == nil {
		t, err := newTransport(opts)
		if err != nil {
			return nil, err
		}
		c.net = newNetwork(t)
	}
	return c, nil
}

// tell passes an event on, one at a time.
func (c *Client) emit(e Event) {
	if c.opts.Events == nil {
		return
	}
	c.events.Lock()
	defer c.events.Unlock()
	c.opts.Events(e)
}

// Most warnings that are passed on, so that a registry cannot flood the screen.
const maxWarnings = 20

// warn passes on what people should know, once.
func (c *Client) warn(host, text string) {
	text = clip(text)
	c.mu.Lock()
	key := host + "\n" + text
	again := c.warned[key] || len(c.warned) >= maxWarnings
	if !again {
		c.warned[key] = true
	}
	c.mu.Unlock()
	if !again && text != "" {
		c.emit(Event{Kind: Warned, Name: host, Err: errors.New(text)})
	}
}

// warnings passes on what an answer warns of (distribution-spec v1.1.1, "Warnings"): 299 - "text".
func (c *Client) warnings(host string, header http.Header) {
	for _, value := range header.Values("Warning") {
		text, ok := strings.CutPrefix(value, `299 - "`)
		text, closed := strings.CutSuffix(strings.TrimSpace(text), `"`)
		if ok && closed {
			c.warn(host, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text))
		}
	}
}
