package remote

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/ingotml/ingot/registry/address"
	"github.com/ingotml/ingot/registry/redact"
)

// FuzzAddress: a redirect to any Location is refused or leads to an allowed address, and no text about it contains its
// secrets.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"/v2/x?state=s3cret", "https://cdn.example/x?s=s3cret-s3cret#y",
		"http://u:s3cret@10.0.0.1/", "//169.254.169.254/x", "https://[::ffff:7f00:1]:80/",
		"http://[fe80::1%25eth0]/", "https://registry.example:443/", "HTTPS://REGISTRY.example/x", "http://127.1/",
		"https://localhost./", "\x00", "http://a b/?c"} {
		f.Add(s)
	}
	from := &url.URL{Scheme: "https", Host: "registry.example", Path: "/v2/x"}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := New(Options{Mirrors: []Mirror{}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.newHost("registry.example")
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: http.MethodGet, URL: from, Header: http.Header{}}
		next, err := h.redirected(req, &http.Response{StatusCode: 302, Header: http.Header{"Location": {s}},
			Body: http.NoBody, Request: req})
		if err != nil || next == nil {
			return
		}
		if next.URL.User != nil || next.URL.Scheme != "https" || next.URL.Host == "" {
			t.Fatalf("%q leads to %s", s, next.URL)
		}
		class, addr := c.literal(next.URL)
		if err := h.checkLiteral(next.URL); err == nil && class != 0 && class != address.Public && !h.owns(next.URL) {
			t.Fatalf("%q is allowed: %s, %s", s, class, addr)
		}
		if text := redact.DisplayURL(next.URL); strings.Contains(text, "?") ||
			strings.Contains(redact.URLs(text), "@") && next.URL.Path == "" {
			t.Fatalf("%q is displayed as %s", s, text)
		}
	})
}
