package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// LoginResult is the result of [Client.Login].
type LoginResult struct {
	// Stored is where the credentials are stored: a file or a credential helper. It is empty if the registry requires
	// none: then they could not be checked, and are not stored.
	Stored string
}

// Login verifies a user's password with a registry and stores both where docker does: in the credential helper that
// docker's config.json names for the registry, else in that file. If the registry issues an identity token, it is
// stored instead of the password. What the registry does not accept is not stored: if it rejects the password, the
// error is an [*AuthError], and if it does not answer as a registry does, an [ErrNoRegistry].
func (c *Client) Login(ctx context.Context, hostname, user, password string) (*LoginResult, error) {
	if user == "" || password == "" {
		return nil, errors.New("a login needs a user and a password")
	}
	h, err := c.newHost(hostname) // not c.host: its state may come from other credentials
	if err != nil {
		return nil, err
	}
	cfg := authn.AuthConfig{Username: user, Password: password}
	accepted, identity, err := h.check(ctx, &credentials.Found{AuthConfig: cfg, Given: true})
	if err != nil {
		return nil, err
	}
	if !accepted {
		return &LoginResult{}, nil
	}
	if identity != "" {
		cfg = authn.AuthConfig{Username: user, IdentityToken: identity}
	}
	where, err := credentials.Store(ctx, h.addr, cfg)
	if err != nil {
		return nil, fmt.Errorf("store credentials for %s: %w", hostname, err)
	}
	c.mu.Lock()
	delete(c.hosts, hostname)
	c.mu.Unlock()
	return &LoginResult{Stored: where}, nil
}

// Logout removes the credentials of a registry (host), or of a namespace of one (host/path), from where ingot finds
// them, and reports whether there were any.
func Logout(ctx context.Context, key string) (found bool, err error) {
	if found, err = credentials.Erase(ctx, key); err != nil {
		return found, fmt.Errorf("remove credentials for %s: %w", key, err)
	}
	return found, nil
}

// check verifies credentials with the registry. If the registry uses tokens, check also requests an identity token, as
// docker's login does. It accepts nothing if the registry requires no credentials.
func (h *host) check(ctx context.Context, user *credentials.Found) (accepted bool, identity string, err error) {
	first, err := h.probe(ctx, "")
	if err != nil {
		return false, "", err
	}
	if first.status == http.StatusOK {
		// Some registries require credentials for pushes only. If they reject a wrong password, they check the right one.
		wrong := &credentials.Found{AuthConfig: authn.AuthConfig{Username: "ingot", Password: rand.Text()}}
		if second, err := h.probe(ctx, basic(wrong)); err != nil || second.status == http.StatusOK {
			return false, "", err
		}
		first.offer = &offer{basic: true}
	}
	if first.offer == nil {
		return false, "", fmt.Errorf("%w: %s requires credentials, but of no kind that ingot knows: its response to "+
			"GET /v2/ has no Basic or Bearer challenge", ErrNoRegistry, h.name)
	}
	why := error(ErrUnauthorized)
	if first.offer.bearer != nil {
		query := url.Values{"account": {user.Username}, "client_id": {clientID}, "offline_token": {"true"}}
		t, err := h.token(ctx, first.offer.bearer, user, nil, query)
		switch {
		case err == nil:
			if why, err = h.accepts(ctx, t.header(), user.Password, t.RefreshToken); why == nil || err != nil {
				return why == nil && err == nil, t.RefreshToken, err
			}
		case !unauthorized(err) && !first.offer.basic:
			return false, "", fmt.Errorf("request a token for %s: %w", h.name, err)
		default:
			why = err
		}
	}
	if first.offer.basic {
		if why, err = h.accepts(ctx, basic(user), user.Password); why == nil || err != nil {
			return why == nil && err == nil, "", err
		}
	}
	return false, "", h.rejected(user, why)
}

// accepts returns no reason if the registry accepts an Authorization header, else its refusal. secrets are redacted.
func (h *host) accepts(ctx context.Context, header string, secrets ...string) (refused, err error) {
	p, err := h.probe(ctx, header)
	if err != nil || p.status == http.StatusOK {
		return nil, err
	}
	return redactStatus(p.refused, secrets...), nil
}

// pong is a registry's response to GET /v2/: a 200, or a refusal with 401, or with 403 if credentials were sent.
type pong struct {
	status  int
	offer   *offer
	refused *StatusError
}

// probe sends GET /v2/ with an Authorization header, if it is not empty. Whatever is no registry's response is an
// error.
func (h *host) probe(ctx context.Context, header string) (*pong, error) {
	return Retry(ctx, h.attempts(), func() (*pong, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base(), nil)
		if err != nil {
			return nil, err
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		resp, err := h.send(req)
		if err != nil {
			return nil, err
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body is better than none
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if err := h.mismatch(resp.StatusCode, body); err != nil {
			return nil, err
		}
		what := http.StatusText(resp.StatusCode)
		switch status := resp.StatusCode; {
		case status == http.StatusOK && !isPage(resp.Header, body):
			return &pong{status: status}, nil
		case status == http.StatusOK:
			what = "a web page"
		case status == http.StatusUnauthorized, status == http.StatusForbidden && header != "":
			return &pong{status, offerOf(resp.Header), statusError(resp)}, nil
		case verdict.Of(verdict.Ping, status) == verdict.Retry:
			return nil, statusError(resp)
		case status/100 == 3:
			what = "a redirect"
			if to, err := req.URL.Parse(resp.Header.Get("Location")); err == nil {
				what += " to " + redact.DisplayURL(to)
			}
		}
		return nil, fmt.Errorf("%w: %s answers GET /v2/ with %s (%d)", ErrNoRegistry, h.name, what, resp.StatusCode)
	})
}

// isPage reports whether a response is HTML.
func isPage(header http.Header, body []byte) bool {
	for _, kind := range []string{header.Get("Content-Type"), http.DetectContentType(body)} {
		if len(kind) >= len("text/html") && kind[:len("text/html")] == "text/html" {
			return true
		}
	}
	return false
}
