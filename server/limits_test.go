package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// Requests that never end are aborted.
func TestSlowRequests(t *testing.T) {
	for name, c := range map[string]struct{ say, want string }{
		"nothing":     {"", ""},
		"half a head": {"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nX-A: b", ""},
		"half a body": {"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"model\"",
			"408 Request Timeout"},
		"no chunks": {"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
			"408 Request Timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(o *server.Options) { o.Timeout = 100 * time.Millisecond })
			conn := f.Dial(t)
			fmt.Fprint(conn, c.say)
			got, err := io.ReadAll(conn)
			if err != nil || !strings.Contains(string(got), c.want) {
				t.Errorf("response %q, %v; want %q and the end of the connection", got, err, c.want)
			}
		})
	}
}

// A client that does not read is disconnected, and does not block others.
func TestSlowReader(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.Timeout = 200 * time.Millisecond })
	f.Says = slices.Repeat([]string{strings.Repeat("word ", 1<<16)}, 200) // more than the socket's buffers hold
	conn := f.Dial(t)
	body := `{"model":"plain","prompt":"x"}`
	fmt.Fprintf(conn, "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		list := f.Loaded()
		if len(list) == 1 && list[0].Leases == 0 {
			break
		}
		f.Has(t, "GET", "/api/version", "", 200)
		if time.Now().After(deadline) {
			t.Fatal("the request is still running")
		}
	}
}

// Headers that are too long, and requests that are not HTTP, are rejected.
func TestBadHeads(t *testing.T) {
	f := serve(t, nil)
	for _, say := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("b", 2*limits.RequestHeader) + "\r\n\r\n",
		"GET /" + strings.Repeat("a", 2*limits.RequestHeader) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"hello\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	} {
		conn := f.Dial(t)
		go fmt.Fprint(conn, say)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && response.StatusCode < 400 {
			t.Errorf("%.40q: status %d", say, response.StatusCode)
		}
	}
	f.Has(t, "GET", "/healthz", "", 200)
}

// Model names are not used as paths.
func TestPaths(t *testing.T) {
	f := serve(t, nil)
	for _, name := range []string{"../plain", "/etc/passwd", "a/../../b", `a\..\b`, "file:///etc/passwd",
		strings.Repeat("a", 5000), "a\x00b", "con:", "."} {
		body, err := wire.Encode(map[string]string{"model": name, "prompt": "x"})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/api/generate", "/api/show"} {
			if status, text := f.Ask(t, "POST", path, string(body)); status != 400 && status != 404 || len(text) > 1000 {
				t.Errorf("%s %.40q: status %d: %.200s", path, name, status, text)
			}
		}
	}
	for _, path := range []string{"/../../etc/passwd", "/api/../..", "/%2e%2e/%2e%2e/etc/passwd", "/api//chat",
		"/api/chat/"} {
		if status, text := f.Ask(t, "GET", path, ""); status != 404 && status != 405 && status != 301 && status != 200 ||
			strings.Contains(text, "root:") {
			t.Errorf("%s: status %d: %s", path, status, text)
		}
	}
}
