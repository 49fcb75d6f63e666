package remote

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/redact"
)

// host is the state of one registry: its address, its authentication challenge and its credentials.
type host struct {
	c           *Client
	name        string // as the user wrote it
	addr        string // host[:port] to connect to
	scheme      string
	maxAttempts int            // per exchange
	keychain    authn.Keychain // source of its credentials
	insecure    bool           // its certificate is not verified
	namers      address.Class  // classes that must be allowed to name its address; 0: it may be at any

	mu              sync.Mutex
	named           map[string]naming        // by origin: what named it
	responseClasses map[string]address.Class // by origin: classes of the addresses that responded
	discovered      bool
	challenge       *transport.Challenge // nil: no authentication required
	credentials     map[string]*credential
	flights         map[string]*flight
	abilities       Abilities
}

// host returns the state of a registry, creating it on first use.
func (c *Client) host(hostname string) (*host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[hostname]; h != nil {
		return h, nil
	}
	h, err := c.newHost(hostname)
	if err == nil {
		c.hosts[hostname] = h
	}
	return h, err
}

// newHost creates the state of the registry of a name.
func (c *Client) newHost(hostname string) (*host, error) {
	h, err := c.bareHost(hostname, c.scheme(hostname))
	if err != nil {
		return nil, err
	}
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
	return &host{
		c: c, name: hostname, addr: reg.RegistryStr(), scheme: scheme,
		maxAttempts: c.opts.Attempts, keychain: c.opts.Keychain,
		named: map[string]naming{}, responseClasses: map[string]address.Class{},
		credentials: map[string]*credential{}, flights: map[string]*flight{}, abilities: guess(reg.RegistryStr()),
	}, nil
}

func (h *host) attempts() *Attempts { return &Attempts{c: h.c, limit: h.maxAttempts} }

// resource is the key of a credential lookup, which tries the repository first, then the host.
type resource struct{ registry, path string }

func (r resource) RegistryStr() string { return r.registry }
func (r resource) String() string {
	if r.path == "" {
		return r.registry
	}
	return r.registry + "/" + r.path
}

// credential authorizes the requests of one set of scopes.
type credential struct {
	header        string // Authorization; empty if the registry requires none
	expires       time.Time
	authenticated bool        // derived from the user's password, token or key
	signed        bool        // obtained with the user's SSH key: see Client.identity
	accepted      atomic.Bool // a request with it was accepted
}

// fresh reports whether a credential exists and has not expired.
func (cr *credential) fresh() bool {
	return cr != nil && (cr.expires.IsZero() || time.Until(cr.expires) > 0)
}

// flight is a call in progress that other goroutines may wait for.
type flight struct {
	done chan struct{}
	err  error
}

// singleflight runs f, or waits for another goroutine's run for the same key and returns its error. So concurrent
// requests get a token once, and a wrong password is tried once. If the other run was canceled, singleflight runs f
// itself.
func (h *host) singleflight(ctx context.Context, key string, f func() error) error {
	for {
		h.mu.Lock()
		other := h.flights[key]
		if other == nil {
			own := &flight{done: make(chan struct{})}
			h.flights[key] = own
			h.mu.Unlock()
			own.err = f()
			h.mu.Lock()
			delete(h.flights, key)
			h.mu.Unlock()
			close(own.done)
			return own.err
		}
		h.mu.Unlock()
		select {
		case <-other.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !errors.Is(other.err, context.Canceled) && !errors.Is(other.err, context.DeadlineExceeded) {
			return other.err
		}
	}
}

// authorization returns the credential for requests of these scopes. stale is one that the registry rejected, which is
// not returned again; it may be nil.
func (h *host) authorization(ctx context.Context, path string, scopes []string,
	stale *credential) (*credential, error) {
	key := strings.Join(scopes, " ")
	for {
		h.mu.Lock()
		now := h.credentials[key]
		h.mu.Unlock()
		if now != stale && now.fresh() {
			return now, nil
		}
		err := h.singleflight(ctx, key, func() error {
			h.mu.Lock()
			now := h.credentials[key]
			h.mu.Unlock()
			if now != stale && now.fresh() {
				return nil // another goroutine's exchange ended before this one began
			}
			if err := h.discoverAuth(ctx); err != nil {
				return err
			}
			next, err := h.exchange(ctx, path, scopes, now, stale)
			if err != nil {
				return err
			}
			h.mu.Lock()
			h.credentials[key] = next
			h.mu.Unlock()
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
}

// recordChallenge stores and returns the challenge of a 401 response. It returns nil if there is none of a supported
// scheme.
func (h *host) recordChallenge(resp *http.Response) *transport.Challenge {
	ch := challengeOf(resp)
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch != nil {
		h.challenge, h.discovered = ch, true
	}
	return ch
}

// challengeOf parses the WWW-Authenticate headers of a 401 response. It returns nil if there is no challenge of a
// supported scheme. go-containerregistry exports its parser only through Ping, which therefore gets a canned response.
func challengeOf(resp *http.Response) *transport.Challenge {
	reg, err := name.NewRegistry("registry.invalid")
	if err != nil {
		return nil
	}
	ch, err := transport.Ping(context.Background(), reg, cannedChallenge(resp.Header))
	if err != nil || ch.Scheme != "basic" && ch.Scheme != "bearer" {
		return nil
	}
	return ch
}

// cannedChallenge is a transport that answers each request with a 401 and these headers.
type cannedChallenge http.Header

func (g cannedChallenge) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header(g), Body: http.NoBody, Request: req}
	return resp, nil
}

// discoverAuth learns how the registry authenticates, with a GET of /v2/
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#determining-support). Registries that allow
// anonymous reads may require nothing here and challenge a later request instead: see recordChallenge.
func (h *host) discoverAuth(ctx context.Context) error {
	h.mu.Lock()
	asked := h.discovered
	h.mu.Unlock()
	if asked {
		return nil
	}
	return h.singleflight(ctx, "", func() error {
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
	if h.scheme == "http" && resp.StatusCode == http.StatusBadRequest {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if strings.Contains(string(b), "HTTPS") { // the wording of Go's, nginx's and Apache's servers
			return fmt.Errorf("registry %s: %w", h.name, ErrTLS)
		}
	}
	if temporaryStatus(resp.StatusCode) {
		return statusError(resp)
	}
	var ch *transport.Challenge
	if resp.StatusCode == http.StatusUnauthorized {
		ch = challengeOf(resp)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.discovered, h.challenge = true, ch
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

// exchange creates a new credential. old is the previous one, or nil. refused is a credential that the registry
// rejected, old or an earlier one; it is nil if old expired.
func (h *host) exchange(ctx context.Context, path string, scopes []string,
	old, refused *credential) (*credential, error) {
	h.mu.Lock()
	ch := h.challenge
	h.mu.Unlock()
	if ch == nil {
		return &credential{}, nil
	}
	cfg := h.lookUp(ctx, path)
	if cfg.RegistryToken != "" {
		return h.staticCredential("Bearer "+cfg.RegistryToken, refused)
	}
	if ch.Scheme == "basic" {
		return h.staticCredential(basic(cfg), refused)
	}
	if old != nil && old.header == "" {
		old = nil // created before the challenge was known
	}
	// First request a token with the user's credentials or anonymously, then one with a signature. Of either kind, request
	// another token only if the last one was accepted.
	accepted := old == nil || old.accepted.Load()
	why := error(ErrUnauthorized)
	if old == nil || accepted && !old.signed {
		t, err := h.token(ctx, ch, cfg, scopes, nil)
		if err == nil && (refused == nil || t.header() != refused.header) {
			return t.credential(cfg), nil
		}
		if err != nil && !errors.Is(err, ErrUnauthorized) {
			return nil, fmt.Errorf("request a token for %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	if accepted || !old.signed {
		t, err := h.signedToken(ctx, ch, scopes)
		if err == nil && t != nil {
			cr := t.credential(cfg)
			cr.authenticated, cr.signed = true, true
			return cr, nil
		}
		if err != nil && !errors.Is(err, ErrUnauthorized) {
			return nil, fmt.Errorf("request a token for %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	return nil, h.refusal(cfg != anonymous, why)
}

// refusal returns the error for a registry that accepts none of the credentials. authenticated says whether there were
// any.
func (h *host) refusal(authenticated bool, err error) error {
	var already *AuthError
	if errors.As(err, &already) {
		return err
	}
	return &AuthError{Host: h.name, Given: authenticated, Err: err}
}

// staticCredential returns a credential that is not exchanged for a token. There is no other, so a refused one is an
// error.
func (h *host) staticCredential(header string, refused *credential) (*credential, error) {
	if refused != nil && refused.header == header {
		return nil, h.refusal(header != "", ErrUnauthorized)
	}
	return &credential{header: header, authenticated: header != ""}, nil
}

// anonymous is the absence of credentials.
var anonymous authn.AuthConfig

// lookUp finds the user's credentials. If that fails, for example because a credential helper is not installed, it
// warns and returns anonymous: public content can still be read.
func (h *host) lookUp(ctx context.Context, path string) authn.AuthConfig {
	auth, err := authn.Resolve(ctx, h.keychain, resource{h.addr, path})
	if err == nil {
		var cfg *authn.AuthConfig
		if cfg, err = authn.Authorization(ctx, auth); err == nil {
			return *cfg
		}
	}
	h.c.warn(h.name, "credentials cannot be read: "+err.Error())
	return anonymous
}

func basic(cfg authn.AuthConfig) string {
	switch {
	case cfg.Username != "" && cfg.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password))
	case cfg.Auth != "":
		return "Basic " + cfg.Auth
	}
	return ""
}
