package registry

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// uploadLocation reads the URL of an upload session from a Location header, which is absolute or relative to the
// request URL from. It returns false if there is no usable one. If the registry is reached over https, an http URL of
// its own host becomes https, because a proxy may terminate TLS; an http URL of another host is not usable.
func (r *repository) uploadLocation(h http.Header, from *url.URL) (*url.URL, bool) {
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

// isBlob reports whether a Location is the URL of a committed blob, not of an upload session.
func isBlob(u *url.URL) bool {
	return strings.Contains(u.Path, "/blobs/sha256:")
}

// rangeEnd returns the number of bytes that the registry has received, from its Range header: "0-99" means 100
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks). Registries send
// "0-0" or "0--1" for an empty upload.
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

// chunkMinLength reads the OCI-Chunk-Min-Length header
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pushing-a-blob-in-chunks). It returns 0 if
// there is none.
func chunkMinLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("OCI-Chunk-Min-Length"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
