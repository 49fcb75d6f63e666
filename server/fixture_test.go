package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/olareg/olareg"
	"github.com/olareg/olareg/config"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// parrot is a model with a given output, which records its requests.
type parrot struct {
	says []string
	fail error         // returned after the output
	wait chan struct{} // received from before the last piece; nil: do not wait
	done chan struct{}
	once sync.Once

	mu    sync.Mutex
	asked []runtime.Request
	left  int // number of requests that were cancelled while waiting

	embedded []runtime.EmbedRequest
}

// errBurst makes a parrot panic after its output.
var errBurst = errors.New("a map is nil")

func (p *parrot) Done() <-chan struct{} { return p.done }
func (p *parrot) Close() error          { p.once.Do(func() { close(p.done) }); return nil }
func (p *parrot) PID() int              { return 4711 }

func (p *parrot) Generate(ctx context.Context, r runtime.Request) iter.Seq2[runtime.Event, error] {
	return func(yield func(runtime.Event, error) bool) {
		p.mu.Lock()
		p.asked = append(p.asked, r)
		p.mu.Unlock()
		if r.MaxTokens == 13 {
			panic("an index is out of range")
		}
		e := runtime.Event{Stats: runtime.Stats{PromptTokens: len(r.Prompt), PromptTime: 3e9, GenerateTime: 1e9}}
		for i, text := range p.says {
			last := i == len(p.says)-1
			if last && p.wait != nil {
				select {
				case <-p.wait:
				case <-ctx.Done():
					p.mu.Lock()
					p.left++
					p.mu.Unlock()
					yield(runtime.Event{}, ctx.Err())
					return
				}
			}
			e.IDs, e.Text = []int32{int32(i)}, text
			if r.LogProbs {
				e.LogProbs = []runtime.LogProb{{ID: int32(i), LogProb: -1, Top: []runtime.TokenProb{{ID: 1022, LogProb: -2}}}}
			}
			e.Stats.Tokens++
			if last && p.fail == nil {
				e.Done = runtime.DoneStop
			}
			if !yield(e, nil) {
				return
			}
		}
		if errors.Is(p.fail, errBurst) {
			panic(p.fail)
		}
		if p.fail != nil {
			yield(runtime.Event{}, p.fail)
		}
	}
}

func (p *parrot) last(t *testing.T) runtime.Request {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) == 0 {
		t.Fatal("the model got no request")
	}
	return p.asked[len(p.asked)-1]
}

// Embed returns vectors with the number of tokens and the first token of each input.
func (p *parrot) Embed(_ context.Context, r runtime.EmbedRequest) (e runtime.Embeddings, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.embedded = append(p.embedded, r)
	for _, ids := range r.Inputs {
		e.Vectors = append(e.Vectors, []float32{float32(len(ids)), float32(ids[0]), 0.1})
		e.Tokens += len(ids)
	}
	return e, p.fail
}

func (p *parrot) lastEmbedded(t *testing.T) runtime.EmbedRequest {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.embedded) == 0 {
		t.Fatal("the model got no request")
	}
	return p.embedded[len(p.embedded)-1]
}

// fixture is a server whose models are parrots.
type fixture struct {
	*Server
	url    string
	parrot *parrot // the last one loaded; it gets says, fail and wait
	says   []string
	fail   error
	wait   chan struct{}
	loads  []Child
}

// chatTemplate renders everything that a template gets.
const chatTemplate = `{% for m in messages %}{{ m.role }}:{{ m.content }}|{% endfor %}` +
	`{% for t in tools or [] %}T={{ t.function.name }}|{% endfor %}think={{ enable_thinking | default('-') }}`

func TestMain(m *testing.M) {
	code := m.Run()
	os.RemoveAll(made)
	os.Exit(code)
}

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
	store, err := manifest.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	create(t, store, "plain")
	create(t, store, "talk", modelfile.Command{Name: modelfile.Template, Value: chatTemplate},
		modelfile.Command{Name: modelfile.Parser, Value: "qwen3"},
		modelfile.Command{Name: modelfile.System, Value: "brief"})
	return home
}

// serve starts a server over a copy of that store.
func serve(t testing.TB, change func(*Options)) *fixture {
	t.Helper()
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS(twoModels(t))); err != nil {
		t.Fatal(err)
	}
	store, err := manifest.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{says: []string{"Hello", " world"}}
	o := Options{Version: "1.2.3", Store: store, CacheSize: -1, Memory: 8 << 30}
	o.Load = func(_ context.Context, c Child, _ func(float64)) (pool.Model, error) {
		f.loads = append(f.loads, c)
		f.parrot = &parrot{says: f.says, fail: f.fail, wait: f.wait, done: make(chan struct{})}
		return f.parrot, nil
	}
	if change != nil {
		change(&o)
	}
	f.Server = New(o)
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
	f.url = "http://" + l.Addr().String()
	return f
}

func create(t testing.TB, store *manifest.Store, name string, more ...modelfile.Command) {
	t.Helper()
	n, err := manifest.ParseName(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "testdata", "models", "demo")
	file := &modelfile.File{Commands: append([]modelfile.Command{{Name: modelfile.From, Value: dir}}, more...)}
	if _, err := convert.Create(t.Context(), store, n, file, convert.Options{}); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request and returns the status and body of the response.
func (f *fixture) ask(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.url+path, strings.NewReader(body))
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

// has checks the status and parts of a response.
func (f *fixture) has(t *testing.T, method, path, body string, status int, parts ...string) {
	t.Helper()
	got, text := f.ask(t, method, path, body)
	if got != status {
		t.Errorf("%s %s %s: status %d, want %d: %s", method, path, body, got, status, text)
	}
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s %s %s: %s\nlacks %s", method, path, body, text, p)
		}
	}
}

// lines decodes a stream.
func lines(t *testing.T, text string) (out []map[string]any) {
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

// event is a server-sent event.
type streamEvent struct {
	name, data string
}

// sse splits a stream into its events.
func sse(t *testing.T, text string) (out []streamEvent) {
	t.Helper()
	if !strings.HasSuffix(text, "\n\n") {
		t.Errorf("the stream does not end with an event: %q", text)
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		var e streamEvent
		for line := range strings.SplitSeq(part, "\n") {
			key, value, ok := strings.Cut(line, ": ")
			switch {
			case ok && key == "event":
				e.name = value
			case ok && key == "data":
				e.data = value
			default:
				t.Errorf("invalid line in the stream: %q", line)
			}
		}
		out = append(out, e)
	}
	return out
}

// decode decodes JSON.
func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// prompt returns the text of the last request's prompt.
func (f *fixture) prompt(t *testing.T) string {
	t.Helper()
	m, err := f.find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Tokenizer().Decode(f.parrot.last(t).Prompt, true)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// same compares inputs.
func same(a, b [][]int32) bool { return slices.EqualFunc(a, b, slices.Equal) }

// newRegistry starts a registry on this machine. before sees each request first and may respond to it.
func newRegistry(t *testing.T, before func(w http.ResponseWriter, r *http.Request) bool) string {
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

// dial opens a connection to the server.
func (f *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

var (
	sampleLine = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\]|\\.)*"(?:,[a-z]+="(?:[^"\\]|\\.)*")*\})? (\S+)$`)
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) ([a-z_]+) (.+)$`)
)

// samples parses metrics and checks their form.
func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out, kinds := map[string]float64{}, map[string]string{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head := headLine.FindStringSubmatch(line); head != nil {
			if current = head[2]; head[1] == "TYPE" {
				kinds[current] = head[3]
			} else if kinds[current] != "" {
				t.Errorf("%s appears twice", current)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a sample: %q", line)
			continue
		}
		if name := m[1]; name != current && !(kinds[current] == "histogram" && strings.HasPrefix(name, current+"_")) {
			t.Errorf("%q is under %s", line, current)
		}
		if kinds[current] == "counter" && !strings.HasSuffix(current, "_total") {
			t.Errorf("counter %s lacks the suffix _total", current)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if _, twice := out[m[1]+m[2]]; twice || err != nil {
			t.Errorf("%q: duplicate %v, %v", line, twice, err)
		}
		out[m[1]+m[2]] = value
	}
	return out
}

// measured returns the metrics of a server.
func (f *fixture) measured(t *testing.T) map[string]float64 {
	t.Helper()
	status, text := f.ask(t, "GET", "/metrics", "")
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	return samples(t, text)
}

func expect(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if x, ok := got[name]; !ok || x != v {
			t.Errorf("%s is %v (found: %v), want %v", name, x, ok, v)
		}
	}
}
