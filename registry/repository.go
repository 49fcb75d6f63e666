package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ingotml/ingot/manifest"
)

// What a request may do with a repository, in the words of the token scope.
const (
	pull = "pull"
	push = "pull,push"
)

// repository is one repository of one registry.
type repository struct {
	*host
	path    string
	scopes  []string  // of its tokens; under host.mu, since a registry may ask for more
	mirrors []*mirror // that are asked first; none for pushes
}

// repository gives the repository of a name for pulling or pushing. from are others of the same registry that blobs may be
// mounted from, which a token has to name.
func (c *Client) repository(n manifest.Name, actions string, from ...string) (*repository, error) {
	if n.IsLocal() {
		return nil, fmt.Errorf("%s: %w: give host/path, such as registry.example.com/%s", n, ErrNoHost, n.Path)
	}
	h, err := c.host(n.Host)
	if err != nil {
		return nil, err
	}
	path := n.Path
	if h.addr == "index.docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path // Docker Hub's own images
	}
	if strings.ToLower(path) != path {
		return nil, fmt.Errorf("%s: registries take lower-case paths only (distribution-spec v1.1.1, \"Pulling manifests\"): give %s/%s",
			n, n.Host, strings.ToLower(n.Path))
	}
	r := &repository{host: h, path: path, scopes: []string{scope(path, actions)}}
	for _, f := range from {
		r.scopes = append(r.scopes, scope(f, pull))
	}
	if actions == pull {
		r.mirrors = c.mirrorsOf(r)
	}
	return r, nil
}

func scope(path, actions string) string { return "repository:" + path + ":" + actions }

// url is an address in the repository: url("blobs", digest).
func (r *repository) url(elem ...string) *url.URL {
	return &url.URL{Scheme: r.scheme, Host: r.addr, Path: "/v2/" + r.path + "/" + strings.Join(elem, "/")}
}

// request makes a request to an address, which may be on another host.
func (r *repository) request(ctx context.Context, method string, u *url.URL, body io.Reader) (*http.Request, error) {
	return newRequest(ctx, method, u, body)
}

// newRequest is [http.NewRequestWithContext] whose errors do not quote the address.
func newRequest(ctx context.Context, method string, u *url.URL, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: not an address that can be asked", method, displayURL(u))
	}
	return req, nil
}

// Most redirects that are followed, and most credentials that are tried for one request.
const (
	maxRedirects = 10
	maxRounds    = 3
)

// redirectError is a redirect that is not followed.
type redirectError struct{ from, to, reason string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("redirect from %s to %s: %s", e.from, e.to, e.reason)
}

// do sends a request once, with the credentials of the registry where it goes to the registry's own address, and again with
// new ones when they were refused and the body can be sent again; where it cannot, the credentials are new for the next request and
// the error is an [ErrInterrupted]. It follows redirects of requests that can be sent again, with their headers but for credentials.
// What reads blobs and manifests is asked of mirrors first. What went wrong on the way is temporary or not; see [attempts.again].
// An answer with any status but the registry's own 401 is given back: see expect. That one is an [*AuthError].
func (r *repository) do(req *http.Request) (*http.Response, error) {
	if resp := r.fromMirror(req); resp != nil {
		return resp, nil
	}
	return r.follow(req)
}

func (r *repository) follow(req *http.Request) (*http.Response, error) {
	for hops := 0; ; hops++ {
		resp, err := r.authorized(req)
		if err != nil {
			return nil, err
		}
		next, err := r.redirected(req, resp)
		if err != nil {
			return nil, err
		}
		if next == nil {
			if hops > 0 && !r.owns(req.URL) && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
				// The registry vouched for this address, for a while. It gives a new one when it is asked again.
				return nil, fmt.Errorf("%w: the address that %s gave is not valid any more: %w", ErrInterrupted, r.name, statusError(resp))
			}
			return resp, nil
		}
		if hops == maxRedirects {
			return nil, &redirectError{displayURL(req.URL), displayURL(next.URL), "too many of them"}
		}
		req = next
	}
}

func (r *repository) authorized(req *http.Request) (*http.Response, error) {
	req.Header.Del("Authorization")
	if !r.owns(req.URL) {
		return r.send(req)
	}
	var refused *credential
	var status *StatusError
	for round := 1; ; round++ {
		r.mu.Lock()
		scopes := r.scopes
		r.mu.Unlock()
		cr, err := r.authorization(req.Context(), r.path, scopes, refused)
		if err != nil {
			return nil, withReason(err, status)
		}
		if cr.header != "" {
			req.Header.Set("Authorization", cr.header)
		} else {
			req.Header.Del("Authorization")
		}
		resp, err := r.send(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized {
			cr.accepted.Store(true)
			return resp, nil
		}
		ch := r.recordChallenge(resp)
		status = statusError(resp)
		if ch == nil || round == maxRounds {
			return nil, r.refusal(cr.authenticated, status)
		}
		refused = cr
		r.addScopes(strings.Fields(ch.Parameters["scope"]))
		if req.Body == nil || req.Body == http.NoBody {
			continue
		}
		if req.GetBody == nil {
			// The next request gets a new credential; where to go on, only the caller knows.
			if _, err := r.authorization(req.Context(), r.path, scopes, refused); err != nil {
				return nil, withReason(err, status)
			}
			return nil, fmt.Errorf("%w: the token expired: %w", ErrInterrupted, status)
		}
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
}

// because adds a registry's words to an error that has none.
func withReason(err error, status *StatusError) error {
	var auth *AuthError
	if status == nil || !errors.As(err, &auth) || auth.Err != ErrUnauthorized {
		return err
	}
	own := *auth // others may have the same one
	own.Err = status
	return &own
}

// Most scopes that a registry can ask for in refusals.
const maxScopes = 32

// widen adds scopes that a refusal names to those that tokens are asked for.
func (r *repository) addScopes(scopes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range scopes {
		if len(r.scopes) < maxScopes && !slices.ContainsFunc(r.scopes, func(have string) bool { return covers(have, s) }) {
			r.scopes = append(slices.Clip(r.scopes), s) // others read the old ones
		}
	}
}

// covers reports whether one scope is a part of another: type:name:actions.
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

// sendError is a failure of a connection, which may not happen again.
type sendError struct {
	method, url string
	secrets     []string // that err may quote
	err         error
}

func (e *sendError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.method, e.url, redact(redactURLs(e.err.Error()), e.secrets...))
}
func (e *sendError) Unwrap() error { return e.err }

// send sends a request as it is.
func (h *host) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", h.c.opts.UserAgent)
	resp, err := h.roundTrip(req)
	if err != nil {
		var refused *addressError
		if errors.As(err, &refused) {
			return nil, refused
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, &sendError{req.Method, displayURL(req.URL), urlSecrets(req.URL), tlsError(err)}
	}
	if resp.Request == nil {
		resp.Request = req
	}
	h.c.warnings(h.name, resp.Header)
	return resp, nil
}

// redirected gives the request that an answer asks for instead; nil when it asks for none.
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
	drain(resp)
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	switch {
	case err != nil || resp.Header.Get("Location") == "":
		return nil, &redirectError{displayURL(req.URL), "nowhere", "it has no usable Location"}
	case to.Scheme != "https" && to.Scheme != "http" || to.Host == "":
		return nil, &redirectError{displayURL(req.URL), displayURL(to), "it is not for HTTP"}
	case to.Scheme == "http" && req.URL.Scheme == "https":
		return nil, &redirectError{displayURL(req.URL), displayURL(to), "it leads away from TLS"}
	}
	to.User = nil
	h.recordNaming("redirect", req.URL, to)
	next := req.Clone(req.Context())
	next.URL, next.Host = to, ""
	next.Header.Del("Authorization") // authorized sets it where it belongs
	if req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// location reads where an upload goes on (distribution-spec v1.1.1, "Pushing blobs"): absolute, or relative to the request.
func (h *host) location(resp *http.Response) (*url.URL, error) {
	from := resp.Request.URL
	value := resp.Header.Get("Location")
	if value == "" {
		return nil, fmt.Errorf("%s %s: the answer has no Location", resp.Request.Method, displayURL(from))
	}
	u, err := from.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s %s: the answer has a Location that is no address", resp.Request.Method, displayURL(from))
	}
	u.User = nil
	if u.Scheme == "http" && from.Scheme == "https" {
		if !strings.EqualFold(u.Hostname(), from.Hostname()) {
			return nil, &redirectError{displayURL(from), displayURL(u), "it leads away from TLS"}
		}
		// A registry behind a proxy that takes TLS off does not know its own address.
		u.Scheme, u.Host = from.Scheme, from.Host
	}
	h.recordNaming("upload", from, u)
	return u, nil
}

// drain reads the rest of an answer, so that its connection can be used again, and closes it.
func drain(resp *http.Response) {
	io.CopyN(io.Discard, resp.Body, maxErrorBody)
	resp.Body.Close()
}
