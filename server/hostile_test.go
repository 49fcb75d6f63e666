package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"
)

// Model names cannot refer to anything outside the store, in any route.
func TestNamesStayInside(t *testing.T) {
	f := serveMute(t, nil)
	tricks := []string{"../../etc/passwd", "/etc/passwd", `..\..\windows`, "sha256:../../../etc/passwd", "sha256-" +
		strings.Repeat("a", 64) + "/../x", "a/../../b:c", "%2e%2e%2fetc%2fpasswd",
		"..%2f..%2fetc%2fpasswd", "plain:../x", "plain@../x", "plain@sha256:..", "http://127.0.0.1:1/x", "file:///etc/passwd",
		"a\x00b", "con:", "nul", strings.Repeat("../", 500), strings.Repeat("a", 9000),
		"\u202eplain", "plain:latest/../../..", ".", "..", "~root", "$HOME", "`id`", "-rf"}
	for _, r := range f.AllEndpoints() {
		if r.Method == "GET" && !wildcard.MatchString(strings.ReplaceAll(r.Path, "{$}", "")) {
			continue
		}
		for _, trick := range tricks {
			if slices.Contains(elsewhere, r.Path) && !strings.Contains(trick, "..") {
				continue
			}
			body, err := wire.Encode(map[string]any{"model": trick, "name": trick, "source": trick, "destination": trick,
				"from": trick, "prompt": "x", "input": "x",
				"messages": []map[string]string{{"role": "user", "content": "x"}}, "max_tokens": 1,
				"files": map[string]string{trick: trick}, "digest": trick})
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{pathAt(r, "x"), pathAt(r, trick)} {
				w := httptest.NewRecorder()
				f.direct(w, r.Method, path, string(body))
				if w.Code < 300 || w.Code > 499 || strings.Contains(w.Body.String(), "root:") {
					t.Errorf("%s %.80s, %.40q: status %d: %.300s", r.Method, path, trick, w.Code, w.Body)
				}
			}
		}
	}
	f.Has(t, "GET", "/healthz", "", 200)
}

// Headers that are too long or inconsistent result in an error or a closed connection.
func TestHostileHeads(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { o.Timeout = time.Second })
	before := heap()
	const post = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\n"
	for name, say := range map[string]string{
		"a long value":      post + "X-A: " + strings.Repeat("b", 1<<20) + "\r\n\r\n",
		"many lines":        post + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n",
		"a long name":       post + strings.Repeat("A", 1<<20) + ": b\r\n\r\n",
		"a long path":       "POST /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a long line":       strings.Repeat("a", 1<<20),
		"two lengths":       post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"a negative length": post + "Content-Length: -2\r\n\r\n{}",
		"no length":         post + "Content-Length: x\r\n\r\n{}",
		"a huge length":     post + "Content-Length: 99999999999999999999\r\n\r\n{}",
		"another encoding":  post + "Transfer-Encoding: gzip\r\n\r\n{}",
		"a huge chunk":      post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
		"a chunk of x":      post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}",
		"a long chunk head": post + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("a", 1<<20),
		"zero bytes":        post + "X-A: \x00\r\n\r\n",
		"another version":   "POST /api/chat HTTP/9.9\r\nHost: localhost\r\n\r\n",
		"no host":           "POST /api/chat HTTP/1.1\r\n\r\n",
		"two hosts":         post + "Host: evil.example\r\n\r\n",
		"HTTP/2":            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":               "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"half a length":     post + "Content-Length: 1000\r\n\r\n{}",
	} {
		conn := f.Dial(t)
		go func() { _, _ = io.WriteString(conn, say) }()
		got, _ := io.ReadAll(io.LimitReader(conn, 1<<20)) // an error means that the connection was closed
		if status := string(got[:min(len(got), len("HTTP/1.1 400"))]); status != "" &&
			!regexp.MustCompile(`^HTTP/1\.[01] (4\d\d|50[15])`).MatchString(status) {
			t.Errorf("%s: %.200q", name, got)
		}
	}
	f.unharmed(t, before)
}

// Many slow or abandoned connections are closed and do not block others.
func TestSlowloris(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { o.Timeout = 500 * time.Millisecond })
	before := heap()
	goroutines := runtime.NumGoroutine()
	const head = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\n"
	begins := []string{head, head + "Content-Length: 100000\r\n\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n", head +
		"Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 90_000),
		"POST /api/blobs/sha256:" + strings.Repeat("0", 64) +
			" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"}
	drips := []string{"X-A: b\r\n", " ", "1\r\n \r\n", " ", "x"}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 200 {
		conn := f.Dial(t)
		_, _ = io.WriteString(conn, begins[i%5])
		switch i / 5 % 10 {
		case 7:
			_ = conn.(*net.TCPConn).CloseWrite() // half-closed
		case 8:
			_ = conn.(*net.TCPConn).SetLinger(0) // reset
			conn.Close()
			continue
		case 9:
			conn.Close()
			continue
		}
		wg.Go(func() {
			ended := make(chan struct{})
			go func() { _, _ = io.Copy(io.Discard, conn); close(ended) }()
			for {
				select {
				case <-ended:
					return
				case <-stop:
					t.Errorf("connection %d is still open", i)
					return
				case <-time.After(50 * time.Millisecond):
					_, _ = io.WriteString(conn, drips[i%5])
				}
			}
		})
	}
	f.Has(t, "GET", "/healthz", "", 200)
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	late := time.AfterFunc(15*time.Second, func() { close(stop) })
	wg.Wait()
	late.Stop()
	http.DefaultClient.CloseIdleConnections()
	deadline := time.Now().Add(5 * time.Second)
	for ; runtime.NumGoroutine() > goroutines+10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
		}
	}
	f.unharmed(t, before)
}

// Large bodies share a memory limit. A body that exceeds its client's share is refused, and memory is released
// afterwards.
func TestLargeBodiesAtOnce(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { o.MaxBody = 16 << 20 })
	f.SetMemoryWait(50*time.Millisecond, time.Hour)
	if _, limit := f.HeldBodies(); limit != 128<<20 {
		t.Fatalf("the limit of all bodies is %d bytes, want %d", limit, 128<<20)
	}
	before := heap()
	body := `{"model":"none","prompt":"` + strings.Repeat("x", 12<<20) + `"}`
	held := make([]net.Conn, 2) // each reserves three times 16 MiB
	for i := range held {
		held[i] = f.Dial(t)
		fmt.Fprintf(held[i], "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body),
			body[:len(body)-1])
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		held, limit := f.HeldBodies()
		left := limit - held
		if left < 48<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are not reserved", left)
		}
	}
	f.Has(t, "POST", "/api/show", body, 429, "no memory for the request", "hold its share")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	for _, c := range held {
		_, _ = io.WriteString(c, body[len(body)-1:])
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || !bytes.HasSuffix(b, []byte("404")) {
			t.Errorf("%q, %v", b, err)
		}
		c.Close()
	}
	f.Has(t, "POST", "/api/generate", body, 404)
	objects := func(n int) string { return `{"messages":[` + strings.Repeat("{},", n-3) + `{}]}` }
	f.Has(t, "POST", "/api/chat", objects(limits.RequestLists+1), 400, "262145 objects and arrays, at most 262144")
	f.Has(t, "POST", "/api/chat", objects(limits.RequestLists), 413, "bytes of memory")
	f.unharmed(t, before)
}
