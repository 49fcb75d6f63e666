package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ingotml/ingot/registry/credentials"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// The token exchange is implemented here, because that of go-containerregistry drops Retry-After, quotes the token
// server's responses in errors, forwards a refresh token on redirects, and does not support signatures.

const (
	clientID     = "ingot"
	maxTokenBody = 1 << 20
	// minTokenLife is the shortest lifetime of a token, and the default if the server gives none (Docker's token
	// specification).
	minTokenLife = 60 * time.Second
	// tokenMargin is how long before its end a token is renewed, so that it does not expire in the middle of a body.
	tokenMargin = 10 * time.Second
)

// token is the response of a token server. See https://distribution.github.io/distribution/spec/auth/token/ and
// https://distribution.github.io/distribution/spec/auth/oauth/.
type token struct {
	Token        string  `json:"token"`
	AccessToken  string  `json:"access_token"` // the same, under OAuth 2.0's name
	RefreshToken string  `json:"refresh_token"`
	ExpiresIn    seconds `json:"expires_in"`

	got time.Time
}

// seconds is a number, which some servers write as a string or with a fraction. Anything else is 0.
type seconds int64

// UnmarshalJSON implements [json.Unmarshaler]. It has no errors.
func (s *seconds) UnmarshalJSON(b []byte) error {
	*s = 0
	// A number that is too large for a float64 is an infinity beside the error.
	if f, _ := strconv.ParseFloat(strings.Trim(string(b), `" `), 64); f > 0 {
		*s = seconds(min(f, 1<<30))
	}
	return nil
}

func (t *token) header() string {
	if t.AccessToken != "" {
		return "Bearer " + t.AccessToken
	}
	return "Bearer " + t.Token
}

func (t *token) credential(user *credentials.Found) *credential {
	life := max(time.Duration(t.ExpiresIn)*time.Second, minTokenLife)
	return &credential{header: t.header(), user: user, got: t.got, expires: t.got.Add(life - tokenMargin)}
}

// token requests a token from the token server of a challenge, for a user or, if it is nil, anonymously. more holds
// additional query parameters.
func (h *host) token(ctx context.Context, challenge map[string]string, user *credentials.Found, scopes []string,
	more url.Values) (*token, error) {
	realm, err := h.realm(challenge)
	if err != nil {
		return nil, err
	}
	t, err := Retry(ctx, h.attempts(), func() (*token, error) {
		return h.tokenOnce(ctx, realm, challenge, user, scopes, more)
	})
	if err != nil && user != nil {
		err = redactStatus(err, user.Password, user.IdentityToken, user.Auth)
	}
	return t, err
}

func (h *host) tokenOnce(ctx context.Context, realm *url.URL, challenge map[string]string, user *credentials.Found,
	scopes []string, more url.Values) (*token, error) {
	if user != nil && user.IdentityToken != "" {
		t, err := h.refresh(ctx, realm, challenge, user.IdentityToken, scopes)
		// Token servers without OAuth 2.0 may still issue an anonymous token.
		if VerdictOf(verdict.Token, err) != verdict.FallBack {
			return t, err
		}
	}
	u := withQuery(realm, challenge, scopes, more)
	req, err := newRequest(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	if header := basic(user); header != "" {
		req.Header.Set("Authorization", header)
	}
	return h.askToken(req)
}

// refresh exchanges an identity token, which docker stores instead of a password, for an access token.
func (h *host) refresh(ctx context.Context, realm *url.URL, challenge map[string]string, identity string,
	scopes []string) (*token, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {identity}, "client_id": {clientID}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if s := challenge["service"]; s != "" {
		form.Set("service", s)
	}
	req, err := newRequest(ctx, http.MethodPost, realm, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return h.askToken(req)
}

func withQuery(realm *url.URL, challenge map[string]string, scopes []string, more url.Values) *url.URL {
	u := *realm
	q := u.Query()
	if s := challenge["service"]; s != "" {
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

// realm returns the URL of the token server that a challenge names. It may be relative to the registry's.
func (h *host) realm(challenge map[string]string) (*url.URL, error) {
	own := &url.URL{Scheme: h.scheme, Host: h.addr, Path: "/v2/"}
	u, err := own.Parse(challenge["realm"])
	switch {
	case err != nil || u.Host == "" || challenge["realm"] == "":
		return nil, fmt.Errorf("registry %s names no token server with a valid URL", h.name)
	case u.Scheme != "https" && (u.Scheme != "http" || h.scheme != "http"):
		return nil, fmt.Errorf("registry %s names a token server without TLS, %s: no credentials are sent to it",
			h.name, redact.DisplayURL(u))
	}
	u.User, u.Fragment = nil, ""
	h.recordNaming("token server", own, u)
	return u, h.checkLiteral(u)
}
