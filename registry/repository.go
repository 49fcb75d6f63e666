package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	path   string
	scopes []string
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
	r := &repository{host: h, path: n.Path}
	if h.addr == "index.docker.io" && !strings.Contains(r.path, "/") {
		r.path = "library/" + r.path // Docker Hub's own images
	}
	if strings.ToLower(r.path) != r.path {
		return nil, fmt.Errorf("%s: registries take lower-case paths only (distribution-spec v1.1.1, \"Pulling manifests\"): give %s/%s",
			n, n.Host, strings.ToLower(n.Path))
	}
	r.scopes = []string{"repository:" + r.path + ":" + actions}
	for _, f := range from {
		r.scopes = append(r.scopes, "repository:"+f+":"+pull)
	}
	return r, nil
}

// url is an address in the repository: url("blobs", digest).
func (r *repository) url(elem ...string) *url.URL {
	return &url.URL{Scheme: r.scheme, Host: r.addr, Path: "/v2/" + r.path + "/" + strings.Join(elem, "/")}
}

// request makes a request to an address, which may be on another host.
func (r *repository) request(ctx context.Context, method string, u *url.URL, body io.Reader) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, method, u.String(), body)
}

// Most redirects that are followed.
const maxRedirects = 10

// redirectError is a redirect that is not followed.
type redirectError struct{ from, to, reason string }

func (e *redirectError) Error() string {
	return fmt.Sprintf("redirect from %s to %s: %s", e.from, e.to, e.reason)
}

// do sends a request once, with the credentials of the registry where it goes to the registry's own address, and a second time with
// new ones when they were refused and the body can be sent again. Of GET and HEAD requests it follows redirects, with their
// headers but for credentials. What went wrong on the way is temporary or not; see [attempts.again].
// An answer with any status is given back: see expect.
func (r *repository) do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", r.c.opts.UserAgent)
	for hops := 0; ; hops++ {
		resp, err := r.authorized(req)
		if err != nil {
			return nil, err
		}
		next, err := redirected(req, resp)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return resp, nil
		}
		if hops == maxRedirects {
			return nil, &redirectError{bare(req.URL), bare(next.URL), "too many of them"}
		}
		req = next
	}
}

func (r *repository) authorized(req *http.Request) (*http.Response, error) {
	if req.URL.Host != r.addr || req.URL.Scheme != r.scheme {
		return r.send(req)
	}
	stale := ""
	for {
		header, err := r.authorization(req.Context(), r.path, r.scopes, stale)
		if err != nil {
			return nil, err
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		resp, err := r.send(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized || stale != "" || header == "" {
			return resp, nil
		}
		stale = header
		refused := expect(resp)
		if req.Body != nil && req.Body != http.NoBody {
			if req.GetBody == nil {
				// The next request gets a new token; where to go on, only the caller knows.
				if _, err := r.authorization(req.Context(), r.path, r.scopes, stale); err != nil {
					return nil, err
				}
				return nil, fmt.Errorf("%w: the token expired: %w", ErrInterrupted, refused)
			}
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

func (r *repository) send(req *http.Request) (*http.Response, error) {
	resp, err := r.c.http.RoundTrip(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // its address may hold secrets
		}
		return nil, fmt.Errorf("%s %s: %w", req.Method, bare(req.URL), err)
	}
	return resp, nil
}

// redirected gives the request that an answer asks for instead; nil when it asks for none.
func redirected(req *http.Request, resp *http.Response) (*http.Request, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, nil
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody)) // so that the connection can be used again
	resp.Body.Close()
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, &redirectError{bare(req.URL), "nowhere", "it has no usable Location"}
	}
	if to.Scheme != "https" && to.Scheme != req.URL.Scheme {
		return nil, &redirectError{bare(req.URL), bare(to), "it leads away from TLS"}
	}
	next := req.Clone(req.Context())
	next.URL, next.Host = to, ""
	next.Header.Del("Authorization") // authorized sets it where it belongs
	return next, nil
}

// location reads where an upload goes on (distribution-spec v1.1.1, "Pushing blobs"): absolute, or relative to the request.
func location(resp *http.Response) (*url.URL, error) {
	value := resp.Header.Get("Location")
	if value == "" {
		return nil, fmt.Errorf("%s %s: the answer has no Location", resp.Request.Method, bare(resp.Request.URL))
	}
	u, err := resp.Request.URL.Parse(value)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%s %s: the answer has a Location that is no address", resp.Request.Method, bare(resp.Request.URL))
	}
	return u, nil
}
