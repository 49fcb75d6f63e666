package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/registry/redact"
	"github.com/ingotml/ingot/registry/verdict"
)

// Actions of a token scope. See https://distribution.github.io/distribution/spec/auth/scope/.
const (
	Pull   = "pull"
	Push   = "pull,push"
	Delete = "pull,delete"
)

// Repository is a repository of a registry.
type Repository struct {
	host    *host
	Path    string
	reads   bool      // it is for pulling only
	scopes  []string  // of its tokens; guarded by host.mu, since a registry may ask for more
	mirrors []*mirror // tried first for reads; none for pushes
	once    bool      // nothing is tried again
}

// Once returns the repository with a budget of one attempt, for requests that only save others.
func (r *Repository) Once() *Repository {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	other := *r
	other.once = true
	return &other
}

// Repository returns the repository of a name, for pulling or pushing. from lists repositories of the same registry to
// mount blobs from, which the token's scopes must include.
func (c *Client) Repository(n manifest.Name, actions string, from ...string) (*Repository, error) {
	if n.IsLocal() {
		return nil, fmt.Errorf("%s: %w: use host/path, such as registry.example.com/%s", n, ErrNoHost, n.Path)
	}
	h, err := c.host(n.Host)
	if err != nil {
		return nil, err
	}
	path := n.Path
	if h.addr == "index.docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path // Docker Hub's official images
	}
	if strings.ToLower(path) != path {
		return nil, fmt.Errorf("%s: repository names must be lower case "+
			"(distribution-spec v1.1.1, \"Pulling manifests\"): use %s/%s",
			n, n.Host, strings.ToLower(n.Path))
	}
	r := &Repository{host: h, Path: path, reads: actions == Pull, scopes: []string{scope(path, actions)}}
	for _, f := range from {
		r.scopes = append(r.scopes, scope(f, Pull))
	}
	if actions == Pull {
		r.mirrors = c.mirrorsOf(r)
	}
	return r, nil
}

func scope(path, actions string) string { return "repository:" + path + ":" + actions }

// URL returns a URL in the repository: r.URL("blobs", digest).
func (r *Repository) URL(elem ...string) *url.URL {
	return &url.URL{Scheme: r.host.scheme, Host: r.host.addr, Path: "/v2/" + r.Path + "/" + strings.Join(elem, "/")}
}

// Request returns a request to a URL, which may be on another host.
func (r *Repository) Request(ctx context.Context, method string, u *url.URL, body io.Reader) (*http.Request, error) {
	return newRequest(ctx, method, u, body)
}

// newRequest is [http.NewRequestWithContext], but its errors do not quote the URL.
func newRequest(ctx context.Context, method string, u *url.URL, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: invalid URL", method, redact.DisplayURL(u))
	}
	return req, nil
}

// Limits on the redirects followed, and on the credentials tried, for one request.
const (
	MaxRedirects = 10
	maxRounds    = 3
)

// redirectError is a redirect that is not followed.
type redirectError struct{ from, to, reason string }

// RedirectRefused returns the error for a redirect that is not followed, from and to being URLs without secrets.
func RedirectRefused(from, to, reason string) error { return &redirectError{from, to, reason} }

func (e *redirectError) Error() string {
	return fmt.Sprintf("redirect from %s to %s: %s", e.from, e.to, e.reason)
}

// Do sends a request. Only requests to the registry's own address carry credentials. Reads of blobs and manifests go to
// mirrors first. Redirects are followed without credentials, if the request can be sent again.
//
// After a 401, Do gets new credentials and sends the request again. If the body cannot be read again, the error is an
// [ErrInterrupted], and the next request uses the new credentials. If no credentials are accepted, the error is an
// [*AuthError].
//
// Any other response is returned, whatever its status; see [Expect]. Errors may be temporary; see [Attempts.Backoff].
func (r *Repository) Do(req *http.Request) (*http.Response, error) {
	if resp := r.fromMirror(req); resp != nil {
		return resp, nil
	}
	return r.follow(req)
}

func (r *Repository) follow(req *http.Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := r.authorized(req)
		if err != nil {
			return nil, err
		}
		next, err := r.host.redirected(req, resp)
		if err != nil {
			return nil, err
		}
		if next == nil {
			if hops > 0 && !r.host.owns(req.URL) && req.Method != http.MethodHead && // whose address may be for GET only
				verdict.Of(verdict.Storage, resp.StatusCode) == verdict.FallBack {
				// Another request to the registry gets a new redirect.
				return nil, fmt.Errorf("%w: the redirect of %s has expired: %w", ErrInterrupted, r.host.name, statusError(resp))
			}
			return resp, nil
		}
		if hops == MaxRedirects {
			return nil, &redirectError{redact.DisplayURL(req.URL), redact.DisplayURL(next.URL), "too many of them"}
		}
		req = next
	}
}

func (r *Repository) authorized(req *http.Request) (*http.Response, error) {
	req.Header.Del("Authorization")
	if !r.host.owns(req.URL) {
		return r.host.send(req)
	}
	for round := 1; ; round++ {
		a := r.access()
		cr, err := r.host.authorization(req.Context(), a)
		if err != nil {
			if resp, second := r.withoutCredentials(req, a, err); resp != nil || second != nil {
				return resp, second
			}
			return nil, err
		}
		resp, err := r.sendAs(req, cr)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized {
			return r.forbidden(req, a, cr, resp)
		}
		o := r.host.recordOffer(offerOf(resp.Header))
		status := statusError(resp)
		if o == nil || round == maxRounds {
			return nil, r.host.rejected(cr.user, status)
		}
		if !r.addScopes(strings.Fields(o.bearer["scope"])) {
			cr.refused.Store(&refusal{status, time.Now()})
		}
		if req.Body == nil || req.Body == http.NoBody {
			continue
		}
		if req.GetBody == nil {
			// Only the caller knows from which offset to resume. The next request gets a new credential.
			return nil, fmt.Errorf("%w: the token expired: %w", ErrInterrupted, status)
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// sendAs sends a request with a credential.
func (r *Repository) sendAs(req *http.Request, cr *credential) (*http.Response, error) {
	if cr.header != "" {
		req.Header.Set("Authorization", cr.header)
	} else {
		req.Header.Del("Authorization")
	}
	return r.host.send(req)
}

// forbidden returns a response that is no 401. If it is the first to these credentials and a 403, the same content may
// be public.
func (r *Repository) forbidden(req *http.Request, a access, cr *credential, resp *http.Response) (*http.Response,
	error) {
	if resp.StatusCode != http.StatusForbidden || cr.user == nil || cr.accepted.Load() || !r.reads {
		cr.accepted.Store(true)
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", redact.DisplayURL(req.URL), ErrInterrupted, err)
	}
	kept := *resp
	resp.Body, kept.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	refused := statusError(&kept)
	if verdict.Limited(refused.Status, refused.Code) {
		return resp, nil
	}
	other, err := r.withoutCredentials(req, a, r.host.rejected(cr.user, refused))
	if other != nil || err != nil {
		return other, err
	}
	return resp, nil
}

// withoutCredentials sends a read that failed with this error without the user's stored credentials. They may have
// expired, and the content may be public. It returns neither a response nor an error if that does not help.
func (r *Repository) withoutCredentials(req *http.Request, a access, refused error) (*http.Response, error) {
	var auth *AuthError
	if !r.reads || !errors.As(refused, &auth) || !auth.Stored || auth.Key != "" {
		return nil, nil
	}
	r.host.mu.Lock()
	o := r.host.offer
	r.host.mu.Unlock()
	if o == nil {
		return nil, nil
	}
	cr, err := r.host.anonymous(req.Context(), o, a)
	if err != nil {
		return nil, nil
	}
	resp, err := r.sendAs(req, cr)
	switch {
	case err != nil:
		return nil, nil
	case verdict.Of("", resp.StatusCode) == verdict.Authorize:
		Drain(resp)
		return nil, nil
	}
	if err := r.host.c.Skipped(r.host.name, auth.passedOver()); err != nil {
		Drain(resp)
		return nil, err
	}
	cr.accepted.Store(true)
	r.host.keep(a, cr)
	return resp, nil
}

// access returns what the repository's credentials are for.
func (r *Repository) access() access {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return access{r.Path, r.scopes}
}

// maxScopes limits the scopes that a registry can add by its challenges.
const maxScopes = 32

// addScopes adds the scopes of a challenge to those that tokens are requested for, and reports whether any is new.
func (r *Repository) addScopes(scopes []string) (added bool) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	for _, s := range scopes {
		if len(r.scopes) < maxScopes && !slices.ContainsFunc(r.scopes, func(have string) bool { return covers(have, s) }) {
			r.scopes = append(slices.Clip(r.scopes), s) // copies: other goroutines read the old slice
			added = true
		}
	}
	return added
}

// covers reports whether one scope (type:name:actions) includes another.
func covers(have, want string) bool {
	h, w := strings.LastIndexByte(have, ':'), strings.LastIndexByte(want, ':')
	if h < 0 || w < 0 || have[:h] != want[:w] {
		return have == want
	}
	actions := strings.Split(have[h+1:], ",")
	for a := range strings.SplitSeq(want[w+1:], ",") {
		if !slices.Contains(actions, a) {
			return false
		}
	}
	return true
}

// sendError is a failed connection. It is temporary unless its cause is known not to be.
type sendError struct {
	method, url string
	secrets     []string // to redact from err
	err         error
}

func (e *sendError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.method, e.url, redact.Secrets(redact.URLs(e.err.Error()), e.secrets...))
}

func (e *sendError) Unwrap() error { return e.err }

// redirected returns the request that a redirect asks for. It returns nil if the response is no redirect, or if the
// request cannot be sent again.
func (h *host) redirected(req *http.Request, resp *http.Response) (*http.Request, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			return nil, nil
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
			return nil, nil
		}
	default:
		return nil, nil
	}
	Drain(resp)
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	switch {
	case err != nil || resp.Header.Get("Location") == "":
		return nil, &redirectError{redact.DisplayURL(req.URL), "nowhere", "it has no usable Location"}
	case to.Scheme != "https" && to.Scheme != "http" || to.Host == "":
		return nil, &redirectError{redact.DisplayURL(req.URL), redact.DisplayURL(to), "it is not for HTTP"}
	case to.Scheme == "http" && req.URL.Scheme == "https":
		return nil, &redirectError{redact.DisplayURL(req.URL), redact.DisplayURL(to), "it leads away from TLS"}
	}
	to.User = nil
	h.recordNaming("redirect", req.URL, to)
	next := req.Clone(req.Context())
	next.URL, next.Host = to, ""
	next.Header.Del("Authorization") // authorized sets it for the registry's own address only
	if req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// Drain reads the rest of a response, so that its connection can be reused, and closes it.
func Drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxErrorBody)
	resp.Body.Close()
}
