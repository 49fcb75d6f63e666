package registry

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
)

// host is one registry: how it is reached, and what it wants to see of who asks.
type host struct {
	c           *Client
	name        string // as people write it
	addr        string // host[:port] that is connected to
	scheme      string
	rule        hostRule
	maxAttempts int            // attempts of an exchange
	keychain    authn.Keychain // whose credentials it gets
	insecure    bool           // its certificate is not checked
	namers      addressClass   // classes that its address is held to; none: it may be anywhere

	mu              sync.Mutex
	named           map[string]naming       // by origin: who led to it
	responseClasses map[string]addressClass // by origin: where its answers came from
	discovered      bool
	challenge       *transport.Challenge // nil: it wants nothing
	credentials     map[string]*credential
	flights         map[string]*flight
}

// host finds or makes the state of a registry.
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

// newHost makes the state of a registry that a name is for.
func (c *Client) newHost(hostname string) (*host, error) {
	h, err := c.bareHost(hostname, c.scheme(hostname))
	if err != nil {
		return nil, err
	}
	h.insecure = c.opts.Insecure
	if c.opts.Private != nil && !c.opts.Private(hostname) {
		h.namers = publicAddress
	}
	return h, nil
}

func (c *Client) bareHost(hostname, scheme string) (*host, error) {
	reg, err := name.NewRegistry(strings.ToLower(hostname))
	if err != nil {
		return nil, fmt.Errorf("registry %q: %w", clip(hostname), err)
	}
	return &host{
		c: c, name: hostname, addr: reg.RegistryStr(), scheme: scheme, rule: ruleOf(hostname),
		maxAttempts: c.opts.Attempts, keychain: c.opts.Keychain,
		named: map[string]naming{}, responseClasses: map[string]addressClass{},
		credentials: map[string]*credential{}, flights: map[string]*flight{},
	}, nil
}

func (h *host) attempts() *attempts { return &attempts{c: h.c, limit: h.maxAttempts} }

// resource is what credentials are looked up by: the repository first, then the host.
type resource struct{ registry, path string }

func (r resource) RegistryStr() string { return r.registry }
func (r resource) String() string {
	if r.path == "" {
		return r.registry
	}
	return r.registry + "/" + r.path
}

// credential is what requests of one scope carry.
type credential struct {
	header        string // Authorization; empty where the registry wants none
	expires       time.Time
	authenticated bool        // made from something of the user's
	signed        bool        // by the user's key: see Client.identity
	accepted      atomic.Bool // a request with it was not refused
}

// fresh reports whether a credential may be used again.
func (cr *credential) fresh() bool {
	return cr != nil && (cr.expires.IsZero() || time.Until(cr.expires) > 0)
}

// flight is an exchange that several goroutines wait for.
type flight struct {
	done chan struct{}
	err  error
}

// alone runs f unless another goroutine is doing so for the same key, whose outcome is then this one's too. So many goroutines
// ask for a token once, and a wrong password is not tried once for each.
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

// authorization is what requests of these scopes carry. stale is one that was refused: it is not given again.
func (h *host) authorization(ctx context.Context, path string, scopes []string, stale *credential) (*credential, error) {
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
				return nil // another goroutine's exchange ended before this one's began
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

// challenged takes note of what a refusal asks for; nil where there is nothing to answer to it.
func (h *host) recordChallenge(resp *http.Response) *transport.Challenge {
	ch := challengeOf(resp)
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch != nil {
		h.challenge, h.discovered = ch, true
	}
	return ch
}

// challengeOf reads the WWW-Authenticate headers of a refusal; nil when there is none that can be answered.
// go-containerregistry's parser is behind its ping, which is therefore given the answer to read.
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

// given is a transport whose every answer is a refusal with these headers.
type cannedChallenge http.Header

func (g cannedChallenge) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header(g), Body: http.NoBody, Request: req}, nil
}

// ask learns what the registry wants to see (distribution-spec v1.1.1, "Determining Support"). Registries that let everybody read
// want nothing here, and say in the refusal of a request what they want for it: see challenged.
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
			if err == nil || errors.Is(err, syscall.ECONNREFUSED) { // nothing listens there: waiting would not help
				return err
			}
			if err = a.backoff(ctx, err); err != nil {
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
	defer drain(resp)
	if h.scheme == "http" && resp.StatusCode == http.StatusBadRequest {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if strings.Contains(string(b), "HTTPS") { // the words of Go's, nginx's and Apache's servers
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

// owns reports whether an address is the registry's own, which alone sees its credentials.
func (h *host) owns(u *url.URL) bool {
	return u.Scheme == h.scheme && origin(u) == origin(&url.URL{Scheme: h.scheme, Host: h.addr})
}

// origin is the host and port of an address, in one way of writing them.
func origin(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// exchange makes a new credential. old is the one before it, nil for none; refused is it or an earlier one that the registry did not
// take, nil where old only grew old.
func (h *host) exchange(ctx context.Context, path string, scopes []string, old, refused *credential) (*credential, error) {
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
		old = nil // made before anything was known
	}
	worked := old == nil || old.accepted.Load()
	why := error(ErrUnauthorized)
	if old == nil || worked && !old.signed {
		t, err := h.token(ctx, ch, cfg, scopes, nil)
		if err == nil && (refused == nil || t.header() != refused.header) {
			return t.credential(cfg), nil
		}
		if err != nil && !errors.Is(err, ErrUnauthorized) {
			return nil, fmt.Errorf("ask the token server of %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	if worked || !old.signed {
		t, err := h.signedToken(ctx, ch, scopes)
		if err == nil && t != nil {
			cr := t.credential(cfg)
			cr.authenticated, cr.signed = true, true
			return cr, nil
		}
		if err != nil && !errors.Is(err, ErrUnauthorized) {
			return nil, fmt.Errorf("ask the token server of %s: %w", h.name, err)
		}
		why = cmp.Or(err, why)
	}
	return nil, h.refusal(cfg != anonymous, why)
}

// refusal is what people are told when no credential does.
func (h *host) refusal(given bool, err error) error {
	var already *AuthError
	if errors.As(err, &already) {
		return err
	}
	return &AuthError{Host: h.name, Given: given, Err: err}
}

// fixed is a credential that is no token: there is one only.
func (h *host) staticCredential(header string, refused *credential) (*credential, error) {
	if refused != nil && refused.header == header {
		return nil, h.refusal(header != "", ErrUnauthorized)
	}
	return &credential{header: header, authenticated: header != ""}, nil
}

// none are the credentials of somebody unknown.
var anonymous authn.AuthConfig

// lookUp finds the user's credentials. Where that fails, such as for a credential helper that is not installed, what is public
// can still be read.
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
