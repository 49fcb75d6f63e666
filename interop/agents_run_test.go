package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// agent is a client's user, with a scratch folder and a server that records. Nothing else can be reached through the
// proxy that the environment names.
type agent struct {
	*user
	scratch string
	server  *recorder
	outside *recorder
	// anyStatus reports that programs may exit with any status.
	anyStatus bool
}

func newAgent(t *testing.T, u *user, s *server) *agent {
	t.Helper()
	client := newUser(t)
	target, err := url.Parse(s.origin)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{user: client, scratch: t.TempDir()}
	a.server = record(t, &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}})
	a.outside = record(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no network", http.StatusBadGateway)
	}))
	bin, err := filepath.Abs(filepath.Join(".bin", "agents", "node_modules", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	a.more = append(a.more, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "NO_COLOR=1")
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		a.more = append(a.more, name+"=127.0.0.1,localhost")
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		a.more = append(a.more, name+"="+a.outside.url, strings.ToLower(name)+"="+a.outside.url)
	}
	return a
}

// do runs a program in the scratch folder and returns what it prints. It must succeed in time.
func (a *agent) do(program string, args ...string) string {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 10*time.Minute)
	defer cancel()
	if !filepath.IsAbs(program) {
		program = tool(a.t, filepath.Join("agents", "node_modules", ".bin", program))
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Env, c.Dir = append(a.env(), a.more...), a.scratch // the last value of a name holds
	c.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !(a.anyStatus && errors.As(err, &exit) && exit.Exited()) {
		a.t.Fatalf("%s: %v\n%s\n%s\n%s", program, err, out.String(), errs.String(), a.server)
	}
	return out.String()
}

// launch starts a client as `ingot launch` does.
func (a *agent) launch(client, model string, args ...string) string {
	a.t.Helper()
	return a.do(ingot, append([]string{"launch", client, "--host", a.server.url, "--model", model, "--"}, args...)...)
}

// file writes a file in the scratch folder.
func (a *agent) file(name, text string) {
	a.t.Helper()
	writeFile(a.t, filepath.Join(a.scratch, name), text)
}

func (a *agent) wantFile(name, want string) {
	a.t.Helper()
	got, err := os.ReadFile(filepath.Join(a.scratch, name))
	if err != nil || string(got) != want {
		a.t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

// recorder is a server that remembers the requests that another handler answers.
type recorder struct {
	url string

	mu   sync.Mutex
	seen []exchange
}

type exchange struct {
	method, path         string
	status               int
	requested, responded string
}

func record(t *testing.T, next http.Handler) *recorder {
	t.Helper()
	r := &recorder{}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		c := &copier{ResponseWriter: w, status: http.StatusOK}
		defer func() { // also if the client has gone, which the proxy panics about
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen = append(r.seen, exchange{q.Method, q.RequestURI, c.status, string(body), c.body.String()})
		}()
		next.ServeHTTP(c, q)
	}))
	t.Cleanup(front.Close)
	r.url = front.URL
	return r
}

func (r *recorder) all() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
}

// String lists the requests, and the responses that are errors.
func (r *recorder) String() string {
	var b strings.Builder
	for _, e := range r.all() {
		fmt.Fprintf(&b, "%s %s: %d\n", e.method, e.path, e.status)
		if e.status != http.StatusOK {
			fmt.Fprintf(&b, "  %s\n", e.responded)
		}
	}
	return b.String()
}

// copier keeps a copy of a response.
type copier struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader keeps the status.
func (c *copier) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *copier) Write(b []byte) (int, error) {
	c.body.Write(b)
	return c.ResponseWriter.Write(b)
}

// Unwrap lets a proxy flush.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }
