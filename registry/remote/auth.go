package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/settings"
	"github.com/ingotml/ingot/registry/verdict"
	"github.com/ingotml/ingot/registry/waiting"
	"golang.org/x/sync/singleflight"
)

// host is the state of one registry: its address, its authentication challenge and its credentials.
type host struct {
	c            *Client
	name         string // as the user wrote it
	addr         string // host[:port] to connect to
	scheme       string
	setting      settings.Host             // its Attempts are per exchange
	mirror       bool                      // another host has what it has
	keychain     authn.Keychain            // source of its credentials
	insecure     bool                      // its certificate is not verified
	certificates *credentials.Certificates // the user's for it; nil: none
	namers       address.Class             // classes that must be allowed to name its address; 0: it may be at any
	waits        waiting.Host
	small        *waiting.Timeouts  // of requests for documents
	running      singleflight.Group // discoveries and exchanges for credentials, by scopes

	mu              sync.Mutex
	named           map[string]naming        // by origin: what named it
	responseClasses map[string]address.Class // by origin: classes of the addresses that responded
	discovered      bool
	offer           *offer // nil: no authentication required
	credentials     map[string]*credential
	abilities       Abilities
}

// host returns the state of a registry, creating it on first use.
func (c *Client) host(hostname string) (*host, error) {
	return c.hostOf(hostname, func() (*host, error) { return c.newHost(hostname) })
}

// hostOf returns the state that is kept under a key, or creates it.
func (c *Client) hostOf(key string, create func() (*host, error)) (*host, error) {
	kept := func(h *host) *host {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.hosts[key] == nil && h != nil {
			c.hosts[key] = h
		}
		return c.hosts[key]
	}
	if h := kept(nil); h != nil {
		return h, nil
	}
	h, err := create() // without the lock: it may warn
	if err != nil {
		return nil, err
	}
	return kept(h), nil
}

// newHost creates the state of the registry of a name.
func (c *Client) newHost(hostname string) (*host, error) {
	h, err := c.bareHost(hostname, "")
	if err != nil {
		return nil, err
	}
	if h.certificates, err = c.certificatesOf(c.opts.CertDir, hostname, h.addr); err != nil {
		return nil, err
	}
	h.scheme = c.scheme(hostname, h.certificates)
	h.insecure = c.opts.Insecure
	if c.opts.Private != nil && !c.opts.Private(hostname) {
		h.namers = address.Public
	}
	return h, nil
}

func (c *Client) bareHost(hostname, scheme string) (*host, error) {
	reg, err := name.NewRegistry(strings.ToLower(hostname))
	if err != nil {
		return nil, fmt.Errorf("registry %q: %w", redact.Clip(hostname), err)
	}
	h := &host{
		c: c, name: hostname, addr: reg.RegistryStr(), scheme: scheme,
		setting: c.Setting(hostname), keychain: c.opts.Keychain,
		named: map[string]naming{}, responseClasses: map[string]address.Class{},
		credentials: map[string]*credential{}, abilities: guess(reg.RegistryStr()),
	}
	h.waits.Timeout = h.setting.Timeout
	h.small = h.waits.New(maxWait)
	return h, nil
}

func (h *host) attempts() *Attempts { return &Attempts{c: h.c, limit: h.setting.Attempts} }

// once runs f, or waits for another goroutine's run for the same key and returns its error. So concurrent requests get
// a token once, and a wrong password is tried once. If the context of the other run has ended, once runs f itself.
func (h *host) once(ctx context.Context, key string, f func() error) error {
	for {
		run := h.running.DoChan(key, func() (any, error) {
			err := f()
			return ctx.Err() != nil, err // of the goroutine that runs f
		})
		select {
		case r := <-run: // bounded by the watch and the budget of the run's requests
			if ended := r.Val.(bool); r.Err == nil || !ended || ctx.Err() != nil {
				return r.Err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// recordOffer stores what the challenges of a 401 response offer. If they offer nothing, as behind some proxies, it
// returns the last offer.
func (h *host) recordOffer(o *offer) *offer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o != nil {
		h.offer, h.discovered = o, true
	}
	return h.offer
}

// discoverAuth learns how the registry authenticates, with a GET of /v2/
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#determining-support). Registries that allow
// anonymous reads may require nothing here and challenge a later request instead: see recordOffer.
func (h *host) discoverAuth(ctx context.Context) error {
	h.mu.Lock()
	discovered := h.discovered
	h.mu.Unlock()
	if discovered {
		return nil
	}
	return h.once(ctx, "", func() error {
		a := h.attempts()
		for {
			err := h.ping(ctx)
			// A refused connection means that nothing listens: waiting would not help.
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) {
				return err
			}
			if err = a.Backoff(ctx, err); err != nil {
				return err
			}
		}
	})
}

func (h *host) ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base(), nil)
	if err != nil {
		return err
	}
	resp, err := h.send(req)
	if err != nil {
		return err
	}
	defer Drain(resp)
	if resp.StatusCode == http.StatusBadRequest {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if err := h.mismatch(resp.StatusCode, b); err != nil {
			return err
		}
	}
	if verdict.Of(verdict.Ping, resp.StatusCode) == verdict.Retry {
		return statusError(resp)
	}
	var o *offer
	if resp.StatusCode == http.StatusUnauthorized {
		o = offerOf(resp.Header)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.discovered, h.offer = true, o
	return nil
}

// mismatch returns the error for a response of a server that expects another kind of connection. It knows the wording
// of Go's, nginx's and Apache's servers.
func (h *host) mismatch(status int, body []byte) error {
	switch {
	case status != http.StatusBadRequest:
		return nil
	case h.scheme == "http" && bytes.Contains(body, []byte("HTTPS")):
		return fmt.Errorf("registry %s: %w", h.name, ErrTLS)
	case h.scheme == "https" && bytes.Contains(body, []byte("No required SSL certificate was sent")):
		return fmt.Errorf("registry %s: %w", h.name, ErrClientCertificate)
	}
	return nil
}

func (h *host) base() string { return h.scheme + "://" + h.addr + "/v2/" }

// owns reports whether a URL is at the registry's own address. Only requests to it carry the registry's credentials.
func (h *host) owns(u *url.URL) bool {
	return u.Scheme == h.scheme && origin(u) == origin(&url.URL{Scheme: h.scheme, Host: h.addr})
}

// origin returns the host and port of a URL in one spelling.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// offer is what a registry accepts, by the challenges of a 401 response.
type offer struct {
	bearer map[string]string // parameters of the challenge for tokens; nil: none are accepted
	basic  bool              // passwords
}

// offerOf returns the first challenge of each supported scheme in a response's WWW-Authenticate headers, or nil.
func offerOf(header http.Header) *offer {
	var o offer
	for _, value := range header.Values("WWW-Authenticate") {
		for _, ch := range parseChallenges(value) {
			switch {
			case ch.scheme == "bearer" && o.bearer == nil:
				o.bearer = ch.parameters
			case ch.scheme == "basic":
				o.basic = true
			}
		}
	}
	if o.bearer == nil && !o.basic {
		return nil
	}
	return &o
}

// challenge is one challenge of a WWW-Authenticate header. Scheme and names of parameters are in lower case.
type challenge struct {
	scheme     string
	parameters map[string]string
}

// parseChallenges parses a WWW-Authenticate header (RFC 9110, section 11.6.1). It has no errors: what it does not
// understand becomes a challenge of an unknown scheme. A comma in a value without quotes does not end a challenge.
func parseChallenges(s string) []challenge {
	var list []challenge
	current := -1 // index of the challenge that parameters belong to
	for {
		s = strings.TrimLeft(s, " \t,")
		if s == "" {
			return list
		}
		word := untilAny(s, " \t,=\"")
		s = s[len(word):]
		rest := strings.TrimLeft(s, " \t")
		switch {
		case strings.HasPrefix(rest, "="):
			var value string
			value, s = parameterValue(strings.TrimLeft(rest[1:], " \t"))
			if current >= 0 {
				list[current].parameters[strings.ToLower(word)] = value
			}
		case word == "":
			s = s[1:] // a quote where none belongs
		default:
			list = append(list, challenge{strings.ToLower(word), map[string]string{}})
			if current < 0 || !strings.HasPrefix(rest, ",") {
				current = len(list) - 1
			}
		}
	}
}

// parameterValue returns the value at the beginning of s, without its quotes, and the rest.
func parameterValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		value = untilAny(s, " \t,")
		return value, s[len(value):]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

// untilAny returns s up to the first of these characters.
func untilAny(s, chars string) string {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i]
	}
	return s
}
