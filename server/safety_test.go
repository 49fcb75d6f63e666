package server

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server/page"
)

// wildcard is a part of a route's path that is the asker's.
var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// askedPath is a path that a route answers.
func askedPath(path string) string {
	return wildcard.ReplaceAllStringFunc(path, func(part string) string {
		switch strings.Trim(part, "{}.") {
		case "$":
			return ""
		case "digest":
			return "sha256:" + strings.Repeat("0", 64)
		}
		return "none"
	})
}

// No route is open to pages and names that are somebody else's, nor, but for those that tell whether the server lives, to those without the key.
func TestEveryRouteIsGuarded(t *testing.T) {
	free, locked := serve(t, nil), serve(t, func(o *Options) { o.APIKey = "secret" })
	for _, r := range free.list() {
		path := askedPath(r.path)
		for _, header := range [][2]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if status, text := free.ask(t, r.method, path, "{}", header[0], header[1]); status != 403 {
				t.Errorf("%s %s with %s: status %d: %.200s", r.method, path, header, status, text)
			}
		}
		want := 401
		if slices.Contains(open, r.path) {
			want = 200
		}
		if strings.HasPrefix(path, page.Prefix) {
			want = 404 // the page has to ask for the key; there is no such part of it
		}
		for _, header := range [][2]string{{"X", ""}, {"Authorization", "Bearer wrong"}, {"X-Api-Key", "secre"}} {
			if status, text := locked.ask(t, r.method, path, "{}", header[0], header[1]); status != want {
				t.Errorf("%s %s with %s: status %d, want %d: %.200s", r.method, path, header, status, want, text)
			}
		}
	}
	free.has(t, "GET", "/healthz", "", 200)
}

// A preflight of a page that may ask is answered without the key, which browsers do not send with it; others learn nothing.
func TestPreflight(t *testing.T) {
	f := serve(t, func(o *Options) { o.APIKey, o.Origins = "secret", []string{"https://chat.example"} })
	for origin, want := range map[string]int{"https://chat.example": 204, "http://localhost:3000": 204, "https://evil.example": 403} {
		status, _ := f.ask(t, "OPTIONS", "/api/chat", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if status != want {
			t.Errorf("%s: status %d, want %d", origin, status, want)
		}
	}
	all := serve(t, func(o *Options) { o.Origins = []string{"*"} })
	if status, text := all.ask(t, "GET", "/api/version", "", "Origin", "https://any.example"); status != 200 {
		t.Errorf("with all origins: %d: %s", status, text)
	}
}

// Who is to come again later is told when.
func TestRetryAfter(t *testing.T) {
	f := serve(t, nil)
	f.says, f.fail = nil, fmt.Errorf("512 requests wait: %w", runtime.ErrBusy)
	answer, err := http.Post(f.url+"/api/generate", "application/json", strings.NewReader(`{"model":"plain","prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") != retryAfter {
		t.Errorf("status %d, Retry-After %q", answer.StatusCode, answer.Header.Get("Retry-After"))
	}
}

// A request may have so many pictures and stop texts.
func TestManyOfAnything(t *testing.T) {
	f := serve(t, nil)
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","images":`+list(maxPictures+1, `"AAAA"`)+`}`, 400, "64 pictures")
	f.has(t, "POST", "/api/chat", `{"model":"talk","messages":[{"role":"user","content":"x","images":`+list(maxPictures+1, `"AAAA"`)+`}]}`, 400, "64 pictures")
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"stop":`+list(maxStops+1, `"a"`)+`}}`, 400, "64 texts")
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"stop":"`+strings.Repeat("a", maxStopText+1)+`"}}`, 400, "4096 bytes")
}
