package cmd_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// testRegistry is a local in-memory registry that counts its traffic.
type testRegistry struct {
	addr string // host:port

	serving sync.RWMutex
	inner   *olareg.Server

	mu       sync.Mutex
	ticks    int    // requests, and reads and writes of their bodies
	at       int    // tick at which then is called; 0: never
	then     func() // called once
	received int64  // bytes of uploads
	sent     int64  // bytes of blobs
}

func newTestRegistry(cleanup func(func())) *testRegistry {
	r := &testRegistry{}
	r.empty()
	server := httptest.NewUnstartedServer(r)
	// Keep the socket's buffer small, so that bytes sent are nearly bytes received by the client.
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(64 << 10)
		}
		return ctx
	}
	server.Start()
	cleanup(func() {
		server.Close()
		r.inner.Close()
	})
	r.addr = strings.TrimPrefix(server.URL, "http://")
	return r
}

// empty removes everything from the registry after the active requests have ended.
func (r *testRegistry) empty() {
	r.serving.Lock()
	defer r.serving.Unlock()
	if r.inner != nil {
		r.inner.Close()
	}
	conf := config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}}
	deletes := true
	conf.API.DeleteEnabled = &deletes
	r.inner = olareg.New(conf)
}

// count resets the counters, and sets the tick at which then is called; 0 means never.
func (r *testRegistry) count(at int, then func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks, r.at, r.then, r.received, r.sent = 0, at, then, 0, 0
}

// never cancels the call of then.
func (r *testRegistry) never() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.then = nil
}

// traffic is the traffic of a registry.
type traffic struct {
	ticks          int
	received, sent int64
}

// counted returns the traffic since the last reset.
func (r *testRegistry) counted() traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	return traffic{r.ticks, r.received, r.sent}
}

func (r *testRegistry) tick(received, sent int) {
	r.mu.Lock()
	r.ticks++
	r.received += int64(received)
	r.sent += int64(sent)
	var then func()
	if r.ticks == r.at {
		then = r.then
	}
	r.mu.Unlock()
	if then != nil {
		then()
	}
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.serving.RLock()
	defer r.serving.RUnlock()
	r.tick(0, 0)
	if strings.Contains(req.URL.Path, "/blobs/") {
		req.Body = &countedBody{req.Body, r}
		w = &countedResponse{w, r}
	}
	r.inner.ServeHTTP(w, req)
	r.tick(0, 0)
}

type countedBody struct {
	io.ReadCloser
	r *testRegistry
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.r.tick(n, 0)
	return n, err
}

type countedResponse struct {
	http.ResponseWriter
	r *testRegistry
}

func (a *countedResponse) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.r.tick(0, n)
	return n, err
}

// denied starts a registry that denies all access, and returns its address.
func denied(cleanup func(func())) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if req.URL.Path == "/v2/" {
			io.WriteString(w, "{}")
			return
		}
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}`)
	}))
	cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// leading starts a registry that redirects to a private one, and returns its address. It is also a proxy that does so.
func leading(cleanup func(func())) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/v2/" {
			http.Redirect(w, req, "http://169.254.169.254/latest/meta-data?signature=s3cret-s3cret", http.StatusFound)
		}
	}))
	cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
