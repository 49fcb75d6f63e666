package registry

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

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
