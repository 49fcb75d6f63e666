package remote

import (
	"net/http"
	"net/url"
	"strings"
)

// UploadLocation reads the URL of an upload session from a Location header, which is absolute or relative to the
// request URL from. It returns false if there is no usable one. A registry behind a proxy may not know its own address:
// if its own host is named with http instead of https, or without its port, the address of the requests is meant. An
// http URL of another host is not usable if the registry is reached over https.
func (r *Repository) UploadLocation(h http.Header, from *url.URL) (*url.URL, bool) {
	value := h.Get("Location")
	if value == "" || from == nil {
		return nil, false
	}
	u, err := from.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	own := strings.EqualFold(u.Hostname(), (&url.URL{Host: r.host.addr}).Hostname())
	switch {
	case r.host.scheme == "https" && u.Scheme == "http":
		if !own {
			return nil, false
		}
		u.Scheme, u.Host = r.host.scheme, r.host.addr
	case own && u.Scheme == r.host.scheme && u.Port() == "":
		u.Host = r.host.addr
	}
	u.User = nil
	r.host.recordNaming("upload", from, u)
	return u, true
}

// Origin returns the scheme://host[:port] of the registry.
func (r *Repository) Origin() string { return r.host.scheme + "://" + r.host.addr }
