package server_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/servertest"
)

// largeResponses are requests whose responses no buffer of a connection holds.
func (f *fixture) largeResponses(t *testing.T) map[string]string {
	t.Helper()
	m, err := f.Find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	longest, size := int32(0), 0
	for id := range int32(m.Tokenizer().Size()) {
		if token, _ := m.Tokenizer().Token(id); len(token) > size {
			longest, size = id, len(token)
		}
	}
	ids := strings.Repeat(fmt.Sprint(longest)+",", responseSize/size)
	return map[string]string{
		"/v1/detokenize": `{"model":"talk","tokens":[` + strings.TrimSuffix(ids, ",") + `]}`,
		"/v1/tokenize":   `{"model":"talk","return_token_strs":true,"prompt":"` + strings.Repeat("zq", responseSize/8) + `"}`,
		"/api/show":      `{"model":"licensed"}`,
	}
}

// responseSize is more than the buffers of a connection have, and less than a text may have.
const responseSize = 7 << 20

// unread sends a request whose answer it does not read.
func (f *fixture) unread(t *testing.T, key, path, body string) net.Conn {
	t.Helper()
	conn := f.Dial(t)
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn, head+"Content-Length: %d\r\n\r\n%s", path, key, len(body), body)
	return conn
}

// head begins a request to a path with a key.
const head = "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"

// holds waits until requests hold as many bytes as wanted.
func (f *fixture) holds(t *testing.T, what string, wanted func(held int64) bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		held, _ := f.HeldBodies()
		if wanted(held) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d bytes are held", what, held)
		}
	}
}

func serveLicensed(t *testing.T) *fixture {
	return serve(t, func(o *server.Options) {
		withKeys(t, "alice ka\nbob kb\n", io.Discard)(o)
		o.MaxBody = 32 << 20 // 256 MiB for all requests
		servertest.Create(t, o.Store, "licensed", modelfile.Command{Name: modelfile.License,
			Value: strings.Repeat("as is ", responseSize/6)})
	})
}

// Responses count until their clients have read them. A client that reads none is kept out; others are not.
func TestUnreadResponses(t *testing.T) {
	f := serveLicensed(t)
	f.SetMemoryWait(50*time.Millisecond, time.Hour)
	for path, body := range f.largeResponses(t) {
		conn := f.unread(t, "ka", path, body)
		f.holds(t, path, func(held int64) bool { return held >= responseSize })
		time.Sleep(20 * time.Millisecond) // if it were released before the client has read it, this would show
		f.holds(t, path, func(held int64) bool { return held >= responseSize })
		var others []net.Conn
		refused := false
		for range 40 { // more than fit into the share
			response, text := f.send(t, path, body, "ka")
			if refused = response.StatusCode == 429 && strings.Contains(text, "its share of the server's memory") &&
				response.Header.Get("Retry-After") != ""; refused {
				break
			}
			before, _ := f.HeldBodies()
			others = append(others, f.unread(t, "ka", path, body))
			for range 200 { // until its answer is held, or it is refused
				if held, _ := f.HeldBodies(); held >= before+responseSize {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		if !refused {
			t.Errorf("%s: a client whose answers fill its share goes on", path)
		}
		if held, total := f.HeldBodies(); held > total/4*3 {
			t.Errorf("%s: %d of %d bytes are held", path, held, total)
		}
		for range 2 {
			response, text := f.send(t, "/v1/detokenize", `{"model":"talk","tokens":[1,2,3]}`, "kb")
			if response.StatusCode != 200 {
				t.Errorf("%s: another client: status %d: %s", path, response.StatusCode, text)
			}
		}
		for _, c := range append(others, conn) {
			c.Close()
		}
		f.holds(t, path, func(held int64) bool { return held == 0 })
	}
}

// Clients that do not read, or do not send, are cut when others wait for what they hold, and only then.
func TestIdleClientsAreCut(t *testing.T) {
	f := serveLicensed(t)
	large := f.largeResponses(t)["/v1/detokenize"]
	begins := `{"model":"none","prompt":"` + strings.Repeat("x", 7<<20)
	for name, idle := range map[string]func() net.Conn{
		"unread answers": func() net.Conn { return f.unread(t, "ka", "/v1/detokenize", large) },
		"slow bodies": func() net.Conn {
			conn := f.Dial(t)
			fmt.Fprintf(conn, head+"Content-Length: %d\r\n\r\n%s", "/api/show", "ka", 7<<20+1000, begins)
			return conn
		},
		"slow chunks": func() net.Conn {
			conn := f.Dial(t)
			fmt.Fprintf(conn, head+"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", "/api/show", "ka", len(begins), begins)
			return conn
		},
	} {
		for _, key := range []string{"ka", "kb"} {
			f.SetMemoryWait(5*time.Second, 100*time.Millisecond)
			conn := idle()
			f.holds(t, name, func(held int64) bool { return held >= responseSize })
			second := idle()
			for range 2 {
				if response, text := f.send(t, "/v1/detokenize", large, key); response.StatusCode != 200 {
					t.Errorf("%s: status %d: %.200s", name, response.StatusCode, text)
				}
			}
			conn.Close()
			second.Close()
			f.holds(t, name, func(held int64) bool { return held == 0 })
		}
	}
}

// A text that no prompt may have is refused before it is made, however few tokens stand for it.
func TestLongTexts(t *testing.T) {
	f := serveLicensed(t)
	large := f.largeResponses(t)["/v1/detokenize"]
	ids := large[strings.IndexByte(large, '[')+1 : len(large)-2]
	more := `{"model":"talk","tokens":[` + ids + "," + ids + `]}`
	if response, text := f.send(t, "/v1/detokenize", more, "ka"); response.StatusCode != 400 ||
		!strings.Contains(text, fmt.Sprint("more than ", limits.PromptText, " bytes: send fewer at once")) {
		t.Errorf("status %d: %.200s", response.StatusCode, text)
	}
}
