package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// host is one registry: how it is reached, and what it wants to see of who asks.
type host struct {
	c      *Client
	name   string // as people write it
	addr   string // host[:port] that is connected to
	scheme string
	rule   hostRule

	mu        sync.Mutex
	challenge *transport.Challenge // nil until asked
	tokens    map[string]string    // Authorization header by scope
}

// host finds or makes the state of a registry.
func (c *Client) host(hostname string) (*host, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.hosts[hostname]; h != nil {
		return h, nil
	}
	reg, err := name.NewRegistry(hostname)
	if err != nil {
		return nil, fmt.Errorf("registry %q: %w", clip(hostname), err)
	}
	h := &host{c: c, name: hostname, addr: reg.RegistryStr(), scheme: c.scheme(hostname), rule: ruleOf(hostname), tokens: map[string]string{}}
	c.hosts[hostname] = h
	return h, nil
}

// resource is what credentials are looked up by: the repository first, then the host.
type resource struct{ registry, path string }

func (r resource) RegistryStr() string { return r.registry }
func (r resource) String() string {
	if r.path == "" {
		return r.registry
	}
	return r.registry + "/" + r.path
}

// authorization is the header for requests with this scope, empty where the registry asks for none. stale is a header that was
// refused: it is not given again. Goroutines that need the same token share one exchange.
func (h *host) authorization(ctx context.Context, path string, scopes []string, stale string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.Join(scopes, " ")
	if header, ok := h.tokens[key]; ok && (stale == "" || header != stale) {
		return header, nil
	}
	if h.challenge == nil {
		if err := h.ping(ctx); err != nil {
			return "", err
		}
	}
	header, err := h.newAuthorization(ctx, path, scopes)
	if err != nil {
		return "", err
	}
	if stale != "" && header == stale {
		return "", fmt.Errorf("registry %s refuses the credentials that it was given: %w", h.name, ErrUnauthorized)
	}
	h.tokens[key] = header
	return header, nil
}

// ping asks the registry what it wants to see (distribution-spec v1.1.1, "Determining Support").
func (h *host) ping(ctx context.Context) error {
	a := h.c.attempts()
	for {
		reg, err := h.registry()
		if err == nil {
			h.challenge, err = transport.Ping(ctx, reg, anonymous{h})
		}
		if err == nil {
			return nil
		}
		if err = a.again(ctx, plain(err)); err != nil {
			return fmt.Errorf("ask registry %s: %w", h.name, err)
		}
	}
}

func (h *host) newAuthorization(ctx context.Context, path string, scopes []string) (string, error) {
	kind := strings.ToLower(h.challenge.Scheme)
	if kind == "" {
		return "", nil
	}
	auth, err := authn.Resolve(ctx, h.c.opts.Keychain, resource{h.addr, path})
	if err != nil {
		return "", fmt.Errorf("credentials for %s: %w", h.name, err)
	}
	cfg, err := authn.Authorization(ctx, auth)
	if err != nil {
		return "", fmt.Errorf("credentials for %s: %w", h.name, err)
	}
	switch {
	case cfg.RegistryToken != "":
		return "Bearer " + cfg.RegistryToken, nil
	case kind == "bearer":
		return h.token(ctx, auth, scopes)
	case cfg.Username != "" && cfg.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password)), nil
	case cfg.Auth != "":
		return "Basic " + cfg.Auth, nil
	}
	return "", nil // without credentials: what is public may be read
}

// token asks the registry's token server.
func (h *host) token(ctx context.Context, auth authn.Authenticator, scopes []string) (string, error) {
	reg, err := h.registry()
	if err != nil {
		return "", err
	}
	a := h.c.attempts()
	for {
		tok, err := transport.Exchange(ctx, reg, auth, anonymous{h}, scopes, h.challenge)
		if err == nil {
			if tok.AccessToken != "" {
				return "Bearer " + tok.AccessToken, nil
			}
			return "Bearer " + tok.Token, nil
		}
		if err = a.again(ctx, plain(err)); err != nil {
			return "", fmt.Errorf("ask the token server of %s: %w", h.name, err)
		}
	}
}

func (h *host) registry() (name.Registry, error) {
	if h.scheme == "http" {
		return name.NewRegistry(h.addr, name.Insecure)
	}
	return name.NewRegistry(h.addr)
}

// anonymous sends requests as they are, but for the scheme: go-containerregistry tries both, and falls back to one without TLS
// on its own.
type anonymous struct{ h *host }

func (t anonymous) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if req.URL.Host == t.h.addr {
		req.URL.Scheme = t.h.scheme
	}
	req.Header.Set("User-Agent", t.h.c.opts.UserAgent)
	return t.h.c.http.RoundTrip(req)
}

// plain makes a go-containerregistry status error one of ours.
func plain(err error) error {
	var e *transport.Error
	if !errors.As(err, &e) {
		return err
	}
	s := &StatusError{Method: http.MethodGet, Status: e.StatusCode}
	if e.Request != nil {
		s.Method, s.URL = e.Request.Method, bare(e.Request.URL)
	}
	if len(e.Errors) > 0 {
		s.Code, s.Message = clip(string(e.Errors[0].Code)), clip(e.Errors[0].Message)
	}
	return s
}
