package registry

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// uploadAt reads where an upload goes on: absolute, or relative to the request. A registry behind a proxy that ends TLS may
// not know that it is asked with TLS; nobody is led away from it.
func (r *repository) uploadLocation(h http.Header, from *url.URL) (*url.URL, bool) {
	value := h.Get("Location")
	if value == "" || from == nil {
		return nil, false
	}
	u, err := from.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	if r.scheme == "https" && u.Scheme == "http" {
		if u.Hostname() != (&url.URL{Host: r.addr}).Hostname() {
			return nil, false
		}
		u.Scheme, u.Host = r.scheme, r.addr
	}
	u.User = nil
	r.recordNaming("upload", from, u)
	return u, true
}

// isBlob reports whether a Location names a finished blob, not an upload.
func isBlob(u *url.URL) bool {
	return strings.Contains(u.Path, "/blobs/sha256:")
}

// rangeEnd reads how many bytes a registry has, of its Range header: "0-99" is 100 (distribution-spec v1.1.1, "Pushing a
// blob in chunks"). Registries say "0-0" and "0--1" for none.
func rangeEnd(h http.Header) (int64, bool) {
	value := strings.TrimPrefix(strings.TrimSpace(h.Get("Range")), "bytes=")
	first, last, ok := strings.Cut(value, "-")
	if !ok || first != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(last, 10, 64)
	switch {
	case err != nil || n < -1:
		return 0, false
	case n <= 0:
		return 0, true
	}
	return n + 1, true
}

// chunkLeast reads OCI-Chunk-Min-Length, which some registries ask for (distribution-spec v1.1.1, "Pushing a blob in chunks").
func chunkMinLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("OCI-Chunk-Min-Length"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
