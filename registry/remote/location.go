package remote

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ingotml/ingot/registry/redact"
)

// UploadLocation reads the URL of an upload session from a Location header, which is absolute or relative to the
// request URL from. It returns false if there is no usable one. If the registry is reached over https, an http URL of
// its own host becomes https, because a proxy may terminate TLS; an http URL of another host is not usable.
func (r *Repository) UploadLocation(h http.Header, from *url.URL) (*url.URL, bool) {
	value := h.Get("Location")
	if value == "" || from == nil {
		return nil, false
	}
	u, err := from.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	if r.host.scheme == "https" && u.Scheme == "http" {
		if u.Hostname() != (&url.URL{Host: r.host.addr}).Hostname() {
			return nil, false
		}
		u.Scheme, u.Host = r.host.scheme, r.host.addr
	}
	u.User = nil
	r.host.recordNaming("upload", from, u)
	return u, true
}

// location returns the URL of an upload session, from a Location that is absolute or relative to the request. See
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-blobs.
func (r *Repository) location(resp *http.Response) (*url.URL, error) {
	from := resp.Request.URL
	value := resp.Header.Get("Location")
	if value == "" {
		return nil, fmt.Errorf("%s %s: the response has no Location", resp.Request.Method, redact.DisplayURL(from))
	}
	u, err := from.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s %s: the response has an invalid Location", resp.Request.Method, redact.DisplayURL(from))
	}
	u.User = nil
	if u.Scheme == "http" && from.Scheme == "https" {
		if !strings.EqualFold(u.Hostname(), from.Hostname()) {
			return nil, &redirectError{redact.DisplayURL(from), redact.DisplayURL(u), "it leads away from TLS"}
		}
		// A registry behind a proxy that terminates TLS does not know its own URL.
		u.Scheme, u.Host = from.Scheme, from.Host
	}
	r.host.recordNaming("upload", from, u)
	return u, nil
}

// Origin returns the scheme://host[:port] of the registry.
func (r *Repository) Origin() string { return r.host.scheme + "://" + r.host.addr }
