package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/runtest"
	"github.com/ingotml/ingot/registry/hub/hubtest"
)

// hostileHub stands before a fake hub. It answers some requests in its place: with wrong statuses, headers and bodies.
type hostileHub struct {
	elsewhere string // another server
	runtest.Decisions
}

// respond responds to a request, or reports that the fake should.
func (h *hostileHub) respond(w http.ResponseWriter, r *http.Request) bool {
	c, turn := h.To(r.Method + " " + r.URL.Path)
	if c.N(3) == 0 {
		return false
	}
	self := "http://" + r.Host
	header := w.Header()
	for range c.N(4) {
		header.Set(c.Pick("Content-Type", "Etag", "X-Linked-Etag", "X-Repo-Commit", "Content-Encoding", "Accept-Ranges"),
			c.Pick("application/json", `"abc"`, strings.Repeat("a", 64), strings.Repeat("b", 40), "gzip", "bytes", "text/html",
				"\u009b31m", ""))
	}
	switch c.N(6) {
	case 0:
		header.Set("X-Linked-Size", c.Pick("0", "-1", "9223372036854775807", "12", "x"))
	case 1:
		header.Set("Content-Range", "bytes "+c.Pick("0-0/1", "5-2/9", "0-99999999999/*", "0-9/9223372036854775807", "x"))
	case 2:
		header.Set("Link", c.Pick("<"+r.URL.RequestURI()+`>; rel="next"`, fmt.Sprintf(`<?cursor=%d>; rel="next"`, turn),
			`<>; rel=next`, "<"+h.elsewhere+r.URL.Path+`>; rel="next"`, fmt.Sprintf(`<%s%s?c=%d>; rel="next"`, h.elsewhere,
				r.URL.Path, turn), `<::>; rel="next"`))
	case 3:
		header.Set("Retry-After", c.Pick("0", "1", "-1", "99999999999", "x", "Fri, 31 Dec 2999 23:59:59 GMT"))
	}
	status := []int{200, 200, 200, 206, 302, 307, 401, 403, 404, 416, 429, 500, 503, 204, 304, 308, 418, 599}[c.N(18)]
	if status/100 == 3 && status != 304 {
		header.Set("Location", c.Pick(self+r.URL.RequestURI(), h.elsewhere+r.URL.Path, "/", "", "//", "file:///etc/passwd",
			"http://127.0.0.1:1/", "::", self+"/repos/x/y/z", self+fmt.Sprint("/next/", turn)))
	}
	body := h.body(c, turn)
	if c.Yes(5) {
		header.Set("Content-Length", fmt.Sprint(max(len(body)+c.N(9)-4, 0)))
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	return true
}

func (h *hostileHub) body(c *runtest.Choices, turn int) string {
	switch c.N(5) {
	case 0:
		return `{"sha":"` + c.Pick(strings.Repeat("a", 40), "", "../x", strings.Repeat("b", 40)) + `","siblings":[` +
			c.Joined(4, ",", func() string { return hostileEntry(c, "rfilename", turn) }) + `],"gated":false}`
	case 1, 2:
		return "[" + c.Joined(5, ",", func() string { return hostileEntry(c, "path", turn) }) + "]"
	case 3:
		return c.Pick("", "null", "{}", "[]", "<html>log in</html>", `{"error":"\u001b[31m`+strings.Repeat("x", 900)+`"}`,
			`{"Code":200,"Success":true,"Data":{"Files":[{"Path":"a","Size":-1}]}}`, strings.Repeat("[", 20_000))
	}
	return string(c.Bytes())
}

// hostileEntry is an entry of a list of files.
func hostileEntry(c *runtest.Choices, key string, turn int) string {
	return fmt.Sprintf(`{"type":"%s","%s":"%s","size":%s,"oid":"%s","lfs":%s}`, c.Pick("file", "directory", "", "link"),
		key,
		c.Pick("config.json", "model-1.safetensors", "../x", "/x", "", "a/b.gguf", "config.json/x", fmt.Sprint("dir", turn),
			`\u001b[31m`, ".", strings.Repeat("d/", 300)+"x", "CON", `a\\b`),
		c.Pick("1", "0", "-1", "9223372036854775807", "null", "23"), c.Pick(strings.Repeat("c", 40), "", "x", emptyBlob),
		c.Pick("null", `{"oid":"`+strings.Repeat("d", 64)+`","size":5}`, `{"oid":"x"}`, `{"size":-3}`))
}

// FuzzResponses: whatever a hub responds, a client comes to an end after a bounded number of requests. It shows its
// token to that hub alone, and no message has it.
func FuzzResponses(f *testing.F) {
	for i := range 32 {
		seed := make([]byte, 40)
		for j := range seed {
			seed[j] = byte(i*29 + j*j*7 + i*j*3)
		}
		f.Add(seed, uint8(i))
	}
	const token = "hf_5ecr3tToken"
	var strangers sync.Map
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			strangers.Store(r.URL.Path, true)
		}
		_, _ = io.WriteString(w, "[]")
	}))
	f.Cleanup(stranger.Close)
	fake := hubtest.New()
	f.Cleanup(fake.Close)
	fake.Add("tiny/model", few())
	hostile := &hostileHub{elsewhere: stranger.URL}
	fake.Set(func(h *hubtest.Hub) {
		h.Front = func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !hostile.respond(w, r) {
					next.ServeHTTP(w, r)
				}
			})
		}
	})
	transport := newTransport()
	f.Cleanup(transport.CloseIdleConnections)
	f.Fuzz(func(t *testing.T, choices []byte, options uint8) {
		hostile.Begin(choices)
		var notices []string
		var mu sync.Mutex
		waits := 0
		patient := func(ctx context.Context, _ time.Duration) error { // a user who waits so often, but no longer
			mu.Lock()
			defer mu.Unlock()
			if waits++; waits > 100 {
				return errors.New("waited for too long")
			}
			return ctx.Err()
		}
		c := client(fake, Options{Sleep: patient, Token: token, ModelScopeToken: token, Stall: time.Minute, Attempts: 3,
			Transport: transport, Verify: options&1 != 0, Memory: 1 << 20, Notice: func(text string) {
				mu.Lock()
				defer mu.Unlock()
				notices = append(notices, text)
			}})
		name := "hf.co/tiny/model"
		if options&2 != 0 {
			name = "modelscope.cn/tiny/model"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, searched := c.Search(ctx, "tiny", 3)
		for _, err := range []error{searched, openAll(ctx, c, name)} {
			if err != nil {
				notices = append(notices, err.Error())
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("no end after %d requests: %q", hostile.Requests(), notices)
		}
		if n := hostile.Requests(); n > 2*limits.ListPages {
			t.Errorf("%d requests", n)
		}
		for _, text := range notices {
			if strings.Contains(text, token) || strings.ContainsAny(text, "\x1b\n\r\u009b") || len(text) > 3000 {
				t.Errorf("message %q", text)
			}
		}
		strangers.Range(func(path, _ any) bool { t.Fatalf("the token went to another server: %v", path); return false })
	})
}

// openAll opens a repository and reads the beginning of each file.
func openAll(ctx context.Context, c *Client, name string) error {
	n, err := ParseName(name)
	if err != nil {
		return err
	}
	folder, err := c.Open(ctx, n)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, name := range folder.names {
		file, err := folder.Open(name)
		if err != nil {
			return err
		}
		_, err = io.ReadAll(io.LimitReader(file, 1<<20))
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
