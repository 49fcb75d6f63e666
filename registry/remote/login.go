package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry/credentials"
)

// LoginResult is the result of [Client.Login].
type LoginResult struct {
	Stored  string // where the credentials are stored: a file or a credential helper
	Checked bool   // the registry accepted them; false if it requires none
}

// Login verifies a user's password with a registry and stores both where docker does: in the credential helper that
// docker's config.json names for the registry, else in that file. If the registry issues an identity token, it is
// stored instead of the password. If the registry rejects the password, the error is an [*AuthError] and nothing is
// stored.
func (c *Client) Login(ctx context.Context, hostname, user, password string) (*LoginResult, error) {
	if user == "" || password == "" {
		return nil, errors.New("a login needs a user and a password")
	}
	h, err := c.newHost(hostname) // not c.host: its state may come from other credentials
	if err != nil {
		return nil, err
	}
	cfg := authn.AuthConfig{Username: user, Password: password}
	checked, identity, err := h.check(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if identity != "" {
		cfg = authn.AuthConfig{Username: user, IdentityToken: identity}
	}
	where, err := credentials.Store(h.addr, cfg)
	if err != nil {
		return nil, fmt.Errorf("store credentials for %s: %w", hostname, err)
	}
	c.mu.Lock()
	delete(c.hosts, hostname)
	c.mu.Unlock()
	return &LoginResult{Stored: where, Checked: checked}, nil
}

// Logout removes a registry's credentials from where Login stores them, and reports whether there were any.
func Logout(hostname string) (found bool, err error) {
	c, err := New(Options{Mirrors: []Mirror{}})
	if err != nil {
		return false, err
	}
	h, err := c.newHost(hostname)
	if err != nil {
		return false, err
	}
	found, err = credentials.Erase(h.addr)
	if err != nil {
		return found, fmt.Errorf("remove credentials for %s: %w", hostname, err)
	}
	return found, nil
}

// check verifies credentials with the registry. If the registry uses tokens, check also requests an identity token, as
// docker's login does.
func (h *host) check(ctx context.Context, cfg authn.AuthConfig) (checked bool, identity string, err error) {
	if err := h.discoverAuth(ctx); err != nil {
		return false, "", err
	}
	if h.challenge == nil {
		return false, "", nil
	}
	header := basic(cfg)
	if h.challenge.Scheme == "bearer" {
		query := url.Values{"account": {cfg.Username}, "client_id": {clientID}, "offline_token": {"true"}}
		t, err := h.token(ctx, h.challenge, cfg, nil, query)
		if errors.Is(err, ErrUnauthorized) {
			return false, "", h.refusal(true, err)
		}
		if err != nil {
			return false, "", fmt.Errorf("request a token for %s: %w", h.name, err)
		}
		header, identity = t.header(), t.RefreshToken
	}
	a := h.attempts()
	for {
		err := h.checkOnce(ctx, header)
		if err == nil {
			return true, identity, nil
		}
		if errors.Is(err, ErrUnauthorized) {
			return false, "", h.refusal(true, redactStatus(err, cfg.Password, identity))
		}
		if err = a.Backoff(ctx, err); err != nil {
			return false, "", err
		}
	}
}

func (h *host) checkOnce(ctx context.Context, header string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", header)
	resp, err := h.send(req)
	if err != nil {
		return err
	}
	defer Drain(resp)
	if s := resp.StatusCode; s == http.StatusUnauthorized || s == http.StatusForbidden || temporaryStatus(s) {
		return statusError(resp)
	}
	return nil
}
