package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/page"
	"github.com/ingotml/ingot/server/servertest"
)

// wildcard matches the variable parts of a route's path.
var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// pathOf returns a path that matches a route.
func pathOf(path string) string {
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

// Every route rejects foreign Host and Origin headers and, except for public paths, requests without the key.
func TestEveryRouteIsGuarded(t *testing.T) {
	free, locked := serve(t, nil), serve(t, func(o *server.Options) { o.APIKey = "secret" })
	for _, r := range free.AllEndpoints() {
		path := pathOf(r.Path)
		for _, header := range [][2]string{{"Host", "evil.example"}, {"Origin", "https://evil.example"}, {"Origin", "null"}} {
			if status, text := free.Ask(t, r.Method, path, "{}", header[0], header[1]); status != 403 {
				t.Errorf("%s %s with %s: status %d: %.200s", r.Method, path, header, status, text)
			}
		}
		want := 401
		if r.Public {
			want = 200
		}
		if r.Path == identity.Path {
			want = 400 // the request has no nonce
		}
		if strings.HasPrefix(path, page.Prefix) {
			want = 404 // files of the page need no key, and this one does not exist
		}
		for _, header := range [][2]string{{"X", ""}, {"Authorization", "Bearer wrong"}, {"X-Api-Key", "secre"}} {
			if status, text := locked.Ask(t, r.Method, path, "{}", header[0], header[1]); status != want {
				t.Errorf("%s %s with %s: status %d, want %d: %.200s", r.Method, path, header, status, want, text)
			}
		}
	}
	free.Has(t, "GET", "/healthz", "", 200)
}

// A preflight request from an allowed origin needs no key, since browsers do not send it. Other origins are rejected.
func TestPreflight(t *testing.T) {
	f := serve(t, func(o *server.Options) {
		o.APIKey = "secret"
		_, o.Origins = servertest.Access(t, "", "https://chat.example")
	})
	for origin, want := range map[string]int{"https://chat.example": 204, "http://localhost:3000": 204,
		"https://evil.example": 403} {
		status, _ := f.Ask(t, "OPTIONS", "/api/chat", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		if status != want {
			t.Errorf("%s: status %d, want %d", origin, status, want)
		}
	}
	all := serve(t, func(o *server.Options) { _, o.Origins = servertest.Access(t, "", "*") })
	if status, text := all.Ask(t, "GET", "/api/version", "", "Origin", "https://any.example"); status != 200 {
		t.Errorf("with all origins: %d: %s", status, text)
	}
}

// A busy server sends Retry-After: the predicted seconds if the model predicts them, rounded up.
func TestRetryAfter(t *testing.T) {
	busy := fmt.Errorf("512 requests wait: %w", runtime.ErrBusy)
	for _, c := range []struct {
		err  error
		want string
	}{
		{busy, "1"},
		{&runtime.RetryError{Err: busy, After: 2100 * time.Millisecond}, "3"},
		{&runtime.RetryError{Err: busy, After: 48 * time.Hour}, "3600"},
		{&runtime.RetryError{Err: runtime.ErrDeadline, After: 7 * time.Second}, "7"},
	} {
		f := serve(t, nil)
		f.Says, f.Fail = nil, c.err
		response, err := http.Post(f.URL+"/api/generate", "application/json",
			strings.NewReader(`{"model":"plain","prompt":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := response.Header.Get("Retry-After"); response.StatusCode != 503 || got != c.want {
			t.Errorf("%v: status %d, Retry-After %q, want %q", c.err, response.StatusCode, got, c.want)
		}
	}
}

// The numbers of pictures and stop texts per request are limited.
func TestManyOfAnything(t *testing.T) {
	f := serve(t, nil)
	list := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","images":`+list(limits.Pictures+1, `"AAAA"`)+`}`, 400,
		"at most 64")
	f.Has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"user","content":"x","images":`+list(limits.Pictures+1, `"AAAA"`)+`}]}`, 400,
		"at most 64")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"stop":`+list(limits.Stops+1,
		`"a"`)+`}}`, 400,
		"64 texts")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"stop":"`+strings.Repeat("a",
		limits.StopText+1)+`"}}`, 400, "4096 bytes")
}

// Names in requests are not used as paths in any route, and responses reveal nothing about the disk.
func TestEveryNameIsNoPath(t *testing.T) {
	f := serve(t, nil)
	tricks := []string{"../plain", "/etc/passwd", "a/../../b", `a\..\b`, "file:///etc/passwd", "~/x", ".", "a\x00b",
		strings.Repeat("a", 5000)}
	for _, r := range f.AllEndpoints() {
		for _, s := range r.Samples {
			var body map[string]any
			if s.Body == "" || json.Unmarshal([]byte(s.Body), &body) != nil {
				continue
			}
			for _, member := range []string{"model", "name", "source", "destination", "from"} {
				old, there := body[member]
				if !there {
					continue
				}
				for _, trick := range tricks {
					body[member] = trick
					text, err := json.Marshal(body)
					if err != nil {
						t.Fatal(err)
					}
					status, response := f.Ask(t, r.Method, pathOf(r.Path), string(text))
					if refused := status == 400 || status == 404 || status == 200 &&
						strings.Contains(response, `"error":`); !refused ||
						strings.Contains(response, "root:") || len(response) > 2000 {
						t.Errorf("%s %s, %s %.40q: status %d: %.300s", r.Method, r.Path, member, trick, status, response)
					}
				}
				body[member] = old
			}
		}
	}
	for _, name := range []string{"../../etc/cron.d/x", "/etc/passwd", `..\x`, "a/../../b", ""} {
		body, err := json.Marshal(map[string]any{"model": "new",
			"files": map[string]string{name: "sha256:" + strings.Repeat("0", 64)}, "stream": false})
		if err != nil {
			t.Fatal(err)
		}
		if status, text := f.Ask(t, "POST", "/api/create", string(body)); status != 400 {
			t.Errorf("file %q: status %d: %s", name, status, text)
		}
	}
	f.Has(t, "GET", "/api/tags", "", 200, `"name":"plain:latest"`, `"name":"talk:latest"`)
}

// streamed are requests for a stream of each API, a text that shows that the stream has started, and the form of an
// error at its end.
var streamed = []struct{ path, body, begun, failed string }{
	{"/api/generate", `{"model":"plain","prompt":"x"}`, "Hello", `{"error":"%s"}`},
	{"/api/chat", `{"model":"talk","messages":[{"role":"user","content":"x"}]}`, "Hello", `{"error":"%s"}`},
	{"/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"x"}],"stream":true}`, "Hello",
		`data: {"error":{"message":"%s"`},
	{"/v1/completions", `{"model":"plain","prompt":"x","stream":true}`, "Hello", `data: {"error":{"message":"%s"`},
	{"/v1/responses", `{"model":"talk","input":"x","stream":true}`, "Hello", `"error":{"code":"server_error",` +
		`"message":"%s"}`},
	{"/v1/messages", `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true}`, "Hello",
		`"message":"%s"}`},
}

// beginStream opens a stream and reads until it contains text.
func (f *fixture) beginStream(t *testing.T, path, body, text string) *bufio.Reader {
	t.Helper()
	response, err := http.Post(f.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	r := bufio.NewReader(response.Body)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %q, %v", path, line, err)
		}
		if strings.Contains(line, text) {
			return r
		}
	}
}

// When the server stops, or on a panic, streams of every API end with an error in the API's form.
func TestStreamsEndWithErrors(t *testing.T) {
	for _, s := range streamed {
		t.Run("stop"+strings.ReplaceAll(s.path, "/", " "), func(t *testing.T) {
			f := serve(t, nil)
			f.Wait = make(chan struct{})
			r := f.beginStream(t, s.path, s.body, s.begun)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			stopped := make(chan struct{})
			go func() { f.Shutdown(ctx); close(stopped) }()
			rest, err := io.ReadAll(r)
			if want := fmt.Sprintf(s.failed, "the server is stopping"); err != nil || !strings.Contains(string(rest), want) {
				t.Errorf("the stream ends with %s, %v; want %s", rest, err, want)
			}
			<-stopped
		})
		t.Run("fault"+strings.ReplaceAll(s.path, "/", " "), func(t *testing.T) {
			f := serve(t, nil)
			f.Fail = servertest.ErrBurst
			r := f.beginStream(t, s.path, s.body, s.begun)
			rest, err := io.ReadAll(r)
			want := fmt.Sprintf(s.failed, "internal error: "+servertest.ErrBurst.Error())
			if err != nil || !strings.Contains(string(rest), want) {
				t.Errorf("the stream ends with %s, %v; want %s", rest, err, want)
			}
			f.Has(t, "GET", "/healthz", "", 200)
			if list := f.Loaded(); len(list) != 1 || list[0].Leases != 0 {
				t.Errorf("models: %+v", list)
			}
		})
	}
}
