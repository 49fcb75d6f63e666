package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/ingotml/ingot/registry/redact"
)

// The token exchange is implemented here, because that of go-containerregistry drops Retry-After, quotes the token
// server's responses in errors, forwards a refresh token on redirects, and does not support signatures.

const (
	clientID     = "ingot"
	maxTokenBody = 1 << 20
	// The shortest lifetime of a token, and the default if the server gives none (Docker's token specification).
	minTokenLife = 60 * time.Second
	// A token is renewed this long before it expires, so that it does not expire in the middle of a body.
	tokenMargin = 10 * time.Second
)

// token is the response of a token server. See https://distribution.github.io/distribution/spec/auth/token/ and
// https://distribution.github.io/distribution/spec/auth/oauth/.
type token struct {
	Token        string `json:"token"`
	AccessToken  string `json:"access_token"` // the same, under OAuth 2.0's name
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"` // seconds

	got time.Time
}

func (t *token) header() string {
	if t.AccessToken != "" {
		return "Bearer " + t.AccessToken
	}
	return "Bearer " + t.Token
}

func (t *token) credential(cfg authn.AuthConfig) *credential {
	life := max(time.Duration(min(t.ExpiresIn, 1<<30))*time.Second, minTokenLife)
	return &credential{header: t.header(), expires: t.got.Add(life - tokenMargin), authenticated: cfg != anonymous}
}

// token requests a token from the registry's token server. more holds additional query parameters.
func (h *host) token(ctx context.Context, ch *transport.Challenge, cfg authn.AuthConfig, scopes []string,
	more url.Values) (*token, error) {
	realm, err := h.realm(ch)
	if err != nil {
		return nil, err
	}
	a := h.attempts()
	for {
		t, err := h.tokenOnce(ctx, realm, ch, cfg, scopes, more)
		if err == nil {
			return t, nil
		}
		if err = a.Backoff(ctx, err); err != nil {
			return nil, redactStatus(err, cfg.Password, cfg.IdentityToken, cfg.Auth)
		}
	}
}

func (h *host) tokenOnce(ctx context.Context, realm *url.URL, ch *transport.Challenge, cfg authn.AuthConfig,
	scopes []string, more url.Values) (*token, error) {
	if cfg.IdentityToken != "" {
		t, err := h.refresh(ctx, realm, ch, cfg, scopes)
		var status *StatusError
		// Not all token servers support OAuth 2.0. Those that do not may still issue an anonymous token.
		if !errors.As(err, &status) || status.Status != http.StatusNotFound && status.Status != http.StatusMethodNotAllowed {
			return t, err
		}
	}
	u := withQuery(realm, ch, scopes, more)
	req, err := newRequest(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	if header := basic(cfg); header != "" {
		req.Header.Set("Authorization", header)
	}
	return h.askToken(req)
}

// refresh exchanges an identity token, which docker stores instead of a password, for an access token.
func (h *host) refresh(ctx context.Context, realm *url.URL, ch *transport.Challenge, cfg authn.AuthConfig,
	scopes []string) (*token, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {cfg.IdentityToken}, "client_id": {clientID}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if s := ch.Parameters["service"]; s != "" {
		form.Set("service", s)
	}
	req, err := newRequest(ctx, http.MethodPost, realm, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return h.askToken(req)
}

func withQuery(realm *url.URL, ch *transport.Challenge, scopes []string, more url.Values) *url.URL {
	u := *realm
	q := u.Query()
	if s := ch.Parameters["service"]; s != "" {
		q.Set("service", s)
	}
	for _, s := range scopes {
		q.Add("scope", s)
	}
	for key, values := range more {
		q[key] = values
	}
	u.RawQuery = q.Encode()
	return &u
}

// askToken sends a request to the token server. A redirect to another host is followed without credentials; it is
// refused if they are in the body.
func (h *host) askToken(req *http.Request) (*token, error) {
	server, header := origin(req.URL), req.Header.Get("Authorization")
	for hops := 0; ; hops++ {
		resp, err := h.send(req)
		if err != nil {
			return nil, err
		}
		next, err := h.redirected(req, resp)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return readToken(resp)
		}
		if hops == MaxRedirects {
			return nil, &redirectError{redact.DisplayURL(req.URL), redact.DisplayURL(next.URL), "too many of them"}
		}
		if origin(next.URL) == server && next.URL.Scheme == req.URL.Scheme {
			if header != "" {
				next.Header.Set("Authorization", header)
			}
		} else if next.Body != nil {
			return nil, &redirectError{redact.DisplayURL(req.URL), redact.DisplayURL(next.URL),
				"credentials are for one host only"}
		}
		req = next
	}
}

func readToken(resp *http.Response) (*token, error) {
	if err := Expect(resp, http.StatusOK); err != nil {
		return nil, err
	}
	defer Drain(resp)
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBody))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", redact.DisplayURL(resp.Request.URL), ErrInterrupted, err)
	}
	t := &token{got: time.Now()}
	// The body is not quoted: it may hold a token.
	if json.Unmarshal(b, t) != nil || t.Token+t.AccessToken == "" {
		return nil, fmt.Errorf("%s %s: the response holds no token", resp.Request.Method, redact.DisplayURL(resp.Request.URL))
	}
	if strings.ContainsFunc(t.Token+t.AccessToken, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("%s %s: the token in the response is not a valid header value",
			resp.Request.Method, redact.DisplayURL(resp.Request.URL))
	}
	return t, nil
}

// realm returns the URL of the token server that the registry's challenge names.
func (h *host) realm(ch *transport.Challenge) (*url.URL, error) {
	u, err := url.Parse(ch.Parameters["realm"])
	switch {
	case err != nil || u.Host == "":
		return nil, fmt.Errorf("registry %s names no token server with a valid URL", h.name)
	case u.Scheme != "https" && (u.Scheme != "http" || h.scheme != "http"):
		return nil, fmt.Errorf("registry %s names a token server without TLS, %s: no credentials are sent to it",
			h.name, redact.DisplayURL(u))
	}
	u.User, u.Fragment = nil, ""
	h.recordNaming("token server", &url.URL{Scheme: h.scheme, Host: h.addr, Path: "/v2/"}, u)
	return u, h.checkLiteral(u)
}
