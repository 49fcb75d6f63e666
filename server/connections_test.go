package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/conns/connstest"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/all"
	"github.com/ingotml/ingot/server/servertest"
)

const (
	generatePlain = `{"model":"plain","prompt":"x"}`
	ownKey        = "Authorization: Bearer s3cret\r\n"
)

// headed is a request with a header, and as much of its body as sent says.
func headed(method, path, header, body string, sent int) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", method, path, header,
		len(body), body[:sent])
}

func generate(header string) string {
	return headed("POST", "/api/generate", header, generatePlain, len(generatePlain))
}

// status sends a request and returns the response's status and body; 0: the connection ended.
func status(conn net.Conn, request string) (int, string) {
	go func() { _, _ = io.WriteString(conn, request) }()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	b, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(b)
}

// says sends a request and fails the test if the response's status is another one.
func says(t *testing.T, conn net.Conn, request string, want int) {
	t.Helper()
	if got, text := status(conn, request); got != want {
		t.Errorf("%.60q: status %d, want %d: %s", request, got, want, text)
	}
}

// inMemory serves clients of any address.
func inMemory(t *testing.T, change func(*server.Options)) (*fixture, *connstest.Listener) {
	t.Helper()
	f := &fixture{servertest.New(t, change, all.APIs...)}
	l := connstest.Listen()
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	t.Cleanup(func() {
		f.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return f, l
}

// TestIdleConnections checks that no number of connections without a complete request keeps a client out, of the same
// address or of another one, whatever they have said.
func TestIdleConnections(t *testing.T) {
	const most = 40
	body := strings.Repeat(" ", 1000)
	for name, c := range map[string]struct {
		say  string
		tls  bool // the server has TLS
		over bool // the clients speak it
	}{
		"nothing":                 {},
		"half a header":           {say: "GET /healthz HTTP/1.1\r\nHost: local"},
		"a request, then nothing": {say: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"many requests":           {say: strings.Repeat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)},
		"a file of the page":      {say: "GET /page/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n"},
		"no key":                  {say: generate("")},
		"no key, half a body":     {say: headed("POST", "/api/generate", "", body, 5)},
		"no key, half an upload":  {say: headed("POST", "/api/blobs/sha256:"+strings.Repeat("0", 64), "", body, 5)},
		"bad TLS":                 {tls: true, say: "hello\r\n\r\n"},
		"no TLS":                  {tls: true},
		"half a hello of TLS":     {tls: true, say: "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
		"nothing over TLS":        {tls: true, over: true},
		"nothing over HTTP/2": {tls: true, over: true, say: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
			"\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(o *server.Options) { o.Connections, o.APIKey = most, "s3cret" }
			f := &fixture{}
			dial := func() net.Conn { return f.Dial(t) }
			if c.tls {
				f = serveTLS(t, set).fixture
				dial = func() net.Conn { return tls.Client(f.Dial(t), &tls.Config{InsecureSkipVerify: true}) }
			} else {
				f = serve(t, set)
			}
			known := dial()
			says(t, known, generate(ownKey), 200)
			for range 3 * most {
				conn := f.Dial(t)
				if c.over {
					protocols := []string{"http/1.1"}
					if strings.HasPrefix(c.say, "PRI") {
						protocols = []string{"h2"}
					}
					conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
				}
				if _, err := io.WriteString(conn, c.say); err != nil {
					t.Fatal(err)
				}
			}
			says(t, dial(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
			says(t, dial(), generate(ownKey), 200)
			says(t, known, generate(ownKey), 200)
		})
	}
}

// TestManyConnections checks the limit itself, that a connection with a request outlasts any number of others, and that
// those are in the log, but not all of them.
func TestManyConnections(t *testing.T) {
	var log syncBuffer
	f, l := inMemory(t, func(o *server.Options) { o.Log = log.printf })
	f.Wait = make(chan struct{})
	stream := l.Dial(t, "192.0.2.1")
	_, _ = io.WriteString(stream, generate(""))
	begun := bufio.NewReader(stream)
	if _, err := begun.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	for i := range limits.Connections + 100 {
		l.Dial(t, fmt.Sprintf("198.51.%d.%d", i/250, i%250))
	}
	says(t, l.Dial(t, "192.0.2.2"), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
	close(f.Wait)
	for text := ""; !strings.Contains(text, `"done":true`); {
		var err error
		if text, err = begun.ReadString('\n'); err != nil {
			t.Fatalf("the stream ended with %q, %v", text, err)
		}
	}
	f.Close()
	text := log.String()
	if n := strings.Count(text, "\n"); n != limits.LogLines+1 || !strings.Contains(text, "82 more lines like this") {
		t.Errorf("%d lines: %.2000s", n, text)
	}
}

// TestConnectionsPerAddress checks that an address with many requests gets no more, and that others, health checks and
// clients with a key do not suffer.
func TestConnectionsPerAddress(t *testing.T) {
	f, l := inMemory(t, nil)
	f.Wait = make(chan struct{})
	defer close(f.Wait)
	const many = "192.0.2.1"
	for range limits.ConnectionsPerAddress {
		if !begins(t, l.Dial(t, many), generate("")) {
			t.Fatal("too few requests of an address are accepted")
		}
	}
	says(t, l.Dial(t, many), generate(""), 503)
	says(t, l.Dial(t, many), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
	if !begins(t, l.Dial(t, "192.0.2.2"), generate("")) {
		t.Error("another address suffers")
	}
}

// begins sends a request, and reports whether the server serves it or is too busy. The response goes on.
func begins(t *testing.T, conn net.Conn, request string) bool {
	t.Helper()
	_, _ = io.WriteString(conn, request)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "200 OK") && !strings.Contains(line, "503 ") {
		t.Fatal(line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return strings.Contains(line, "200 OK")
}

// TestConnectionsReserve checks that requests leave connections to health checks and to clients with a key.
func TestConnectionsReserve(t *testing.T) {
	const most = 2*limits.ConnectionsReserve + 20
	for _, key := range []string{"", "s3cret"} {
		t.Run("key "+key, func(t *testing.T) {
			f, l := inMemory(t, func(o *server.Options) { o.Connections, o.APIKey = most, key })
			f.Wait = make(chan struct{})
			defer close(f.Wait)
			header, want := "", most-limits.ConnectionsReserve
			if key != "" {
				header, want = ownKey, most-limits.ConnectionsReserve/2
			}
			begun := 0
			for i := range most {
				if begins(t, l.Dial(t, fmt.Sprintf("192.0.2.%d", i%4)), generate(header)) {
					begun++
				}
			}
			if begun != want {
				t.Errorf("%d requests were accepted, want %d", begun, want)
			}
			for range most {
				says(t, l.Dial(t, "192.0.2.1"), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
			}
		})
	}
}

// TestSlowBodies checks that clients without a key whose bodies come slowly do not keep others out, and that an upload
// goes on.
func TestSlowBodies(t *testing.T) {
	_, l := inMemory(t, func(o *server.Options) { o.Connections = 40 })
	slow := headed("POST", "/api/generate", "", generatePlain, 5)
	last := net.Conn(nil)
	for i := range 100 {
		last = l.Dial(t, fmt.Sprintf("192.0.2.%d", i%3))
		_, _ = io.WriteString(last, slow)
	}
	says(t, l.Dial(t, "192.0.2.1"), generate(""), 200)
	says(t, l.Dial(t, "192.0.2.7"), generate(""), 200)
	says(t, last, generatePlain[5:], 200)
}

// TestRefusedBody checks that a client does not hold its connection by a body that nobody reads.
func TestRefusedBody(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.APIKey, o.Timeout = "s3cret", 100*time.Millisecond })
	for name, say := range map[string]string{
		"no key":     headed("POST", "/api/generate", "", generatePlain, 5),
		"other host": strings.Replace(headed("POST", "/api/generate", ownKey, generatePlain, 5), "localhost", "a.example", 1),
		"public":     headed("GET", "/healthz", "", generatePlain, 5),
		"page":       headed("GET", "/page/app.js", "", generatePlain, 5),
		"unknown":    headed("POST", "/nothing", ownKey, generatePlain, 5),
		"no chunks":  "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	} {
		conn := f.Dial(t)
		_, _ = io.WriteString(conn, say)
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSmuggling checks that a request whose end a proxy may see elsewhere is the last one of its connection. Other
// requests leave it open.
func TestSmuggling(t *testing.T) {
	f := serve(t, nil)
	const chunks, plain = "Transfer-Encoding: chunked\r\n", "Host: localhost\r\n"
	const show = "POST /api/show HTTP/1.1\r\n" + plain
	const keep = plain + "Connection: keep-alive\r\n"
	for name, c := range map[string]struct {
		first string
		want  int // responses
	}{
		"a length and chunks": {show + "Content-Length: 4\r\n" + chunks + "\r\n0\r\n\r\n", 1},
		"chunks and a length": {show + chunks + "Content-Length: 4\r\n\r\n0\r\n\r\n", 1},
		"chunks":              {show + chunks + "\r\n0\r\n\r\n", 1},
		"chunks and a length in HTTP/1.0": {"POST /api/show HTTP/1.0\r\n" + keep + chunks +
			"Content-Length: 5\r\n\r\n0\r\n\r\n", 1},
		"chunks in HTTP/1.0": {"GET /healthz HTTP/1.0\r\n" + keep + chunks + "\r\n", 1},
		"a length":           {show + "Content-Length: 2\r\n\r\n{}", 2},
		"nothing":            {"GET /healthz HTTP/1.1\r\n" + plain + "\r\n", 2},
	} {
		conn := f.Dial(t)
		_, _ = io.WriteString(conn, c.first+"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		b, err := io.ReadAll(conn)
		if n := strings.Count(string(b), "HTTP/1."); n != c.want {
			t.Errorf("%s: %d responses, want %d: %q, %v", name, n, c.want, b, err)
		}
	}
}
