package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/registry/waiting"
)

// Options configure a [Client]. The zero value suits most callers.
type Options struct {
	// Keychain finds credentials. nil: docker's config.json and credential helpers, then podman's.
	Keychain authn.Keychain
	// IdentityFile is the OpenSSH private key that identifies the user to Ollama's registries.
	// Empty: $INGOT_SSH_KEY, then ~/.ollama/id_ed25519.
	IdentityFile string
	Mirrors      []Mirror // nil: those of $INGOT_MIRRORS, as parsed by ParseMirrors
	// PlainHTTP disables TLS. Loopback addresses use plain HTTP by default, unless Insecure or CAFile is set.
	PlainHTTP bool
	// Insecure disables certificate verification for the hosts in names, but not for hosts that a registry names.
	Insecure  bool
	CertDir   string            // folder of certificates for the hosts in names; empty: docker's and podman's
	CAFile    string            // PEM file of certificate authorities to trust in addition to the system's
	Attempts  int               // per exchange, without progress; 0: DefaultAttempts. Setting goes before it.
	UserAgent string            // empty: ingot
	Transport http.RoundTripper // nil: the client's own, with the proxies of the environment

	// Private reports whether the host of a name may be at an address that is not public; nil: any host may. It is for
	// callers that act for others, such as a server. Mirrors may be at any address. With a Transport, only hosts that need
	// no DNS lookup are checked.
	Private func(host string) bool

	// Strict makes an optional step that fails an error, instead of a warning; see [Client.Skipped].
	Strict bool

	// Warn receives each warning of a registry once. host is empty if it is about none. It may be nil, and may be called
	// by several goroutines at a time.
	Warn func(host string, err error)

	// Setting returns how a host is used; nil: all as by default.
	Setting func(host string) settings.Host
	// Paused is told that a host limits requests, and for how long none is sent to it. It may be nil, and may be called by
	// several goroutines at a time.
	Paused func(host string, wait time.Duration)
}

// Client sends requests to registries. It is safe for concurrent use.
type Client struct {
	opts  Options
	http  http.RoundTripper                          // Options.Transport; nil if net is set
	Net   *network                                   // nil with Options.Transport; a test may change it
	Sleep func(context.Context, time.Duration) error // before a retry; a test may replace it

	mu     sync.Mutex
	hosts  map[string]*host
	gates  waiting.Gates // by origin
	warned map[string]bool
}

// New returns a client. It fails only if Options.CAFile or INGOT_MIRRORS is invalid.
func New(opts Options) (*Client, error) {
	if opts.Keychain == nil {
		opts.Keychain = credentials.Default
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
	c := &Client{opts: opts, http: opts.Transport, Sleep: Sleep, hosts: map[string]*host{}, warned: map[string]bool{}}
	if c.http == nil {
		t, err := newTransport(opts)
		if err != nil {
			return nil, err
		}
		c.Net = newNetwork(t)
	}
	return c, nil
}

// Skipped is called when an optional step, such as a mount, has failed and is left out. err says what is left out and
// why, and host is empty if it is about none. Skipped warns and returns nil. With [Options.Strict], or after an
// interruption by the user, it returns an error.
func (c *Client) Skipped(host string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case c.opts.Strict && host == "":
		return fmt.Errorf("%w: %w", ErrSkipped, err)
	case c.opts.Strict:
		return fmt.Errorf("%s: %w: %w", host, ErrSkipped, err)
	}
	c.warnOnce(host, err.Error(), math.MaxInt) // never lost among a registry's own warnings
	return nil
}

// warn passes on a registry's own warning, unless the same one was emitted before, or too many.
func (c *Client) warn(host, text string) { c.warnOnce(host, redact.Clip(text), maxWarnings) }

// warnOnce emits a warning, unless the same one was emitted before, or as many as limit.
func (c *Client) warnOnce(host, text string, limit int) {
	c.mu.Lock()
	key := host + "\n" + text
	again := c.warned[key] || len(c.warned) >= limit
	if !again {
		c.warned[key] = true
	}
	c.mu.Unlock()
	if !again && text != "" && c.opts.Warn != nil {
		c.opts.Warn(host, errors.New(text))
	}
}

// warnings passes on the warnings of a response's header, which have the form 299 - "text". See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#warnings.
func (c *Client) warnings(host string, header http.Header) {
	for _, value := range header.Values("Warning") {
		text, ok := strings.CutPrefix(value, `299 - "`)
		text, closed := strings.CutSuffix(strings.TrimSpace(text), `"`)
		if ok && closed {
			c.warn(host, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text))
		}
	}
}

// maxWarnings limits the warnings that are passed on, so that a registry cannot flood the terminal.
const maxWarnings = 20
