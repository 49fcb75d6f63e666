// Package servertest serves models that are parrots, for the tests of package server and of the APIs.
//
// Contract: only tests import it. It depends on no API: a test passes those that it needs.
package servertest

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"
)

// Fixture is a server whose models are parrots.
type Fixture struct {
	*server.Server
	URL     string
	Parrot  *Parrot // the last one loaded; it gets says, fail and wait
	Says    []string
	Fail    error
	Wait    chan struct{}
	Loading chan struct{} // is received from before a load ends
	NoLoad  error         // of loads
	Prefill chan struct{} // is received from before the first piece
	Loads   []server.Child
}

// chatTemplate renders everything that a template gets.
const chatTemplate = `{% for m in messages %}{{ m.role }}:{{ m.content }}|{% endfor %}` +
	`{% for t in tools or [] %}T={{ t.function.name }}|{% endfor %}think={{ enable_thinking | default('-') }}`

// Main runs a package's tests, and then deletes what Serve left.
func Main(m *testing.M) int {
	defer os.RemoveAll(made)
	return m.Run()
}

// Forget makes the next Serve create the models again: their files are gone.
func Forget() { made = "" }

var made string // the path of twoModels' store

// twoModels returns a store with the models "plain", which has no chat template, and "talk", which has one and a
// parser. It is created once.
func twoModels(t testing.TB) string {
	t.Helper()
	if made != "" {
		return made
	}
	home, err := os.MkdirTemp("", "ingot-server-*")
	if err != nil {
		t.Fatal(err)
	}
	made = home
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	Create(t, store, "plain")
	Create(t, store, "talk", modelfile.Command{Name: modelfile.Template, Value: chatTemplate},
		modelfile.Command{Name: modelfile.Parser, Value: "qwen3"},
		modelfile.Command{Name: modelfile.System, Value: "brief"})
	return home
}

// API returns the endpoints of an API over a server.
type API = func(*server.Server) server.API

// Serve starts a server with some APIs over a copy of that store. change may change its options.
func Serve(t testing.TB, change func(*server.Options), apis ...API) *Fixture {
	t.Helper()
	f := New(t, change, apis...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.Serve(l) }()
	t.Cleanup(func() {
		f.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	f.URL = "http://" + l.Addr().String()
	if f.Options().Certificate != nil {
		f.URL = "https://" + l.Addr().String()
	}
	return f
}

// New is Serve without a listener, for tests that call ServeHTTP. The caller must call Close.
func New(t testing.TB, change func(*server.Options), apis ...API) *Fixture {
	t.Helper()
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS(twoModels(t))); err != nil {
		t.Fatal(err)
	}
	store, err := store.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fixture{Says: []string{"Hello", " world"}}
	o := server.Options{Version: "1.2.3", Store: store, CacheSize: -1, Memory: 8 << 30}
	o.Load = func(ctx context.Context, c server.Child, _ func(float64)) (pool.Model, error) {
		f.Loads = append(f.Loads, c)
		if f.Loading != nil {
			select {
			case <-f.Loading:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if f.NoLoad != nil {
			return nil, f.NoLoad
		}
		f.Parrot = &Parrot{Says: f.Says, fail: f.Fail, wait: f.Wait, prefill: f.Prefill,
			done: make(chan struct{})}
		return f.Parrot, nil
	}
	if change != nil {
		change(&o)
	}
	f.Server = server.New(o, apis...)
	return f
}

// Create creates a model from the demo checkpoint.
func Create(t testing.TB, store *store.Store, name string, more ...modelfile.Command) {
	t.Helper()
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(Root(t), "testdata", "models", "demo")
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: dir}}, more...)}
	if _, err := convert.Create(t.Context(), store, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
}

// Root returns the path of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the tests run outside the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// Ask sends a request and returns the status and body of the response.
func (f *Fixture) Ask(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

// Has checks the status and parts of a response.
func (f *Fixture) Has(t *testing.T, method, path, body string, status int, parts ...string) {
	t.Helper()
	got, text := f.Ask(t, method, path, body)
	if got != status {
		t.Errorf("%s %s %s: status %d, want %d: %s", method, path, body, got, status, text)
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s %s %s: %s\nlacks %s", method, path, body, text, p)
		}
	}
}

// Lines decodes a stream.
func Lines(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}

// Event is a server-sent event.
type Event struct {
	Name, Data string
}

// Events splits a stream into its events. Like clients, it skips comments.
func Events(t *testing.T, text string) (out []Event) {
	t.Helper()
	if !strings.HasSuffix(text, "\n\n") {
		t.Errorf("the stream does not end with an event: %q", text)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		if strings.HasPrefix(part, ":") {
			continue
		}
		var e Event
		for line := range strings.SplitSeq(part, "\n") {
			key, value, ok := strings.Cut(line, ": ")
			switch {
			case ok && key == "event":
				e.Name = value
			case ok && key == "data":
				e.Data = value
			default:
				t.Errorf("invalid line in the stream: %q", line)
			}
		}
		out = append(out, e)
	}
	return out
}

// Decode decodes JSON.
func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Prompt returns the text of the last request's prompt.
func (f *Fixture) Prompt(t *testing.T) string {
	t.Helper()
	m, err := f.Find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Tokenizer().Decode(f.Parrot.Last(t).Prompt, true)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Same compares inputs.
func Same(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal) }

// NewRegistry starts a registry on this machine. before sees each request first and may respond to it.
func NewRegistry(t *testing.T, before func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	inner := olareg.New(config.Config{Storage: config.ConfigStorage{StoreType: config.StoreMem}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.Close()
		inner.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

// Dial opens a connection to the server.
func (f *Fixture) Dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(strings.TrimPrefix(f.URL, "http://"), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}
