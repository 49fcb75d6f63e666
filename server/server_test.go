package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/convert"
	"github.com/ingotml/ingot/manifest"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/modelfile"
	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server/identity"
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
	store, err := store.Open(home)
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
	store, err := store.Open(home)
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

func create(t testing.TB, store *store.Store, name string, more ...modelfile.Command) {
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

func TestPlainAnswers(t *testing.T) {
	f := serve(t, nil)
	f.has(t, "GET", "/", "", 200, "ingot is running")
	f.has(t, "HEAD", "/", "", 200)
	f.has(t, "GET", "/healthz", "", 200, "ok")
	f.has(t, "GET", "/readyz", "", 200, "ok")
	f.has(t, "GET", "/api/version", "", 200, `"version":"1.2.3"`, `"ingot":"1.2.3"`,
		`"store":"`+identity.StoreID(f.opts.Store)+`"`)
	f.has(t, "GET", "/api/tags", "", 200, `"name":"plain:latest"`, `"name":"talk:latest"`, `"family":"llama"`,
		`"parameter_size":"`, `"quantization_level":"BF16"`)
	f.has(t, "GET", "/api/ps", "", 200, `{"models":[]}`)
	f.has(t, "POST", "/api/show", `{"model":"talk"}`, 200, `"system":"brief"`, `"parser":"qwen3"`,
		`"general.architecture":"llama"`, `"llama.context_length":512`,
		`"capabilities":["completion"`, `FROM talk:latest`, `temperature 0.7`)
	f.has(t, "POST", "/api/show", `{"name":"plain"}`, 200, `"details":{`)
	f.has(t, "POST", "/api/show", `{"model":"none"}`, 404, `ingot pull`)
	f.has(t, "GET", "/nothing", "", 404, `{"error":"/nothing not found"}`)
	f.has(t, "GET", "/api/chat", "", 405, `GET /api/chat is not supported: use POST`)
}

func TestGenerate(t *testing.T) {
	f := serve(t, func(o *Options) { o.Draft = runtime.Draft{Mode: runtime.DraftOff} })
	status, text := f.ask(t, "POST", "/api/generate",
		`{"model":"plain","prompt":"Once","options":{"temperature":0,"stop":"x","num_predict":7,"seed":5,"num_gpu":1}}`)
	list := lines(t, text)
	if status != 200 || len(list) != 3 || list[0]["response"] != "Hello" || list[1]["response"] != " world" ||
		list[0]["done"] != false {
		t.Fatalf("%d: %s", status, text)
	}
	end := list[2]
	if end["done"] != true || end["done_reason"] != "stop" || end["response"] != "" || end["model"] != "plain:latest" ||
		end["eval_count"] != 2.0 ||
		end["prompt_eval_count"] != 2.0 || end["prompt_eval_duration"] != 3e9 || end["eval_duration"] != 1e9 ||
		end["total_duration"].(float64) <= 0 {
		t.Errorf("last message: %v", end)
	}
	if ids := end["context"].([]any); len(ids) != 4 || ids[2] != 0.0 || ids[3] != 1.0 {
		t.Errorf("context: %v", ids)
	}
	r := f.parrot.last(t)
	if r.Sampling.Temperature != 0 || r.Sampling.TopP != 0.9 || r.MaxTokens != 7 || *r.Sampling.Seed != 5 ||
		!slices.Equal(r.Stop, []string{"x"}) || r.Special {
		t.Errorf("request: %+v", r)
	}
	prompt := r.Prompt
	if r.Draft != (runtime.Draft{Mode: runtime.DraftOff}) {
		t.Errorf("draft: %+v", r.Draft)
	}

	status, text = f.ask(t, "POST", "/api/generate",
		`{"model":"plain","prompt":"Once","stream":false,"ids":true,"context":[5,6]}`)
	if list = lines(t, text); status != 200 || len(list) != 1 || list[0]["response"] != "Hello world" ||
		fmt.Sprint(list[0]["ids"]) != "[0 1]" {
		t.Errorf("%d: %s", status, text)
	}
	if got := f.parrot.last(t); !slices.Equal(got.Prompt, slices.Concat([]int32{5, 6}, prompt[1:])) ||
		got.Sampling.Temperature != 0.7 || got.MaxTokens != 0 {
		t.Errorf("request with a context: %+v", got)
	}
	f.has(t, "POST", "/api/generate", `{"model":"talk","prompt":"Once","stream":false}`, 200, `"response":"Hello world"`)
	if got := f.parrot.last(t); !got.Special {
		t.Error("a request to a model with a parser does not ask for special tokens")
	}
	f.has(t, "POST", "/api/generate", `{"model":"talk","prompt":"Once","raw":true,"stream":false}`, 200)
	if got := f.parrot.last(t); !slices.Equal(got.Prompt, prompt) {
		t.Errorf("raw: %v", got.Prompt)
	}
	for body, want := range map[string]string{
		``:               "no body",
		`{`:              "unexpected end of JSON",
		`{"prompt":"x"}`: "the model is missing",
		`{"model":"plain","prompt":"x","system":"s"}`:                  "which a system message requires",
		`{"model":"plain","prompt":"x","think":true}`:                  "which controlling thinking requires",
		`{"model":"plain","prompt":"x","think":"deeply"}`:              "think must be true, false",
		`{"model":"plain","prompt":"x","suffix":"y"}`:                  "does not support insert",
		`{"model":"plain","prompt":"x","template":"{{ .Prompt"}`:       "template",
		`{"model":"plain","prompt":"x","images":["AAAA"]}`:             "vision",
		`{"model":"plain","prompt":"x","images":["!"]}`:                "not valid base64",
		`{"model":"plain","prompt":"x","keep_alive":"soon"}`:           "keep_alive",
		`{"model":"plain","prompt":"a b c d","options":{"num_ctx":2}}`: "num_ctx is 2",
		`{"model":"talk","prompt":"x","raw":true,"system":"s"}`:        "raw excludes",
		`{"model":"../../etc/passwd","prompt":"x"}`:                    "model name",
	} {
		f.has(t, "POST", "/api/generate", body, 400, `{"error":"`, want)
	}
	f.has(t, "POST", "/api/generate", `{"model":"none","prompt":"x"}`, 404, "none:latest", "ingot pull")
}

func TestChat(t *testing.T) {
	f := serve(t, nil)
	f.says = []string{"<think>\nhm", "</think>\n", "It is",
		` so.<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>`}
	body := `{"model":"talk","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"",` +
		`"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},` +
		`{"role":"tool","tool_name":"f","content":"2"}],"tools":[{"type":"function","function":{"name":"f",` +
		`"parameters":{"type":"object"}}}],"think":false}`
	status, text := f.ask(t, "POST", "/api/chat", body)
	var content, thought string
	var calls []any
	list := lines(t, text)
	for _, m := range list {
		message := m["message"].(map[string]any)
		content += message["content"].(string)
		if s, ok := message["thinking"].(string); ok {
			thought += s
		}
		if c, ok := message["tool_calls"].([]any); ok {
			calls = append(calls, c...)
		}
	}
	if status != 200 || strings.TrimSpace(content) != "It is so." || thought != "hm" || len(calls) != 1 {
		t.Fatalf("%d: content %q, thinking %q, calls %v\n%s", status, content, thought, calls, text)
	}
	fn := calls[0].(map[string]any)["function"].(map[string]any)
	if fn["name"] != "f" || fmt.Sprint(fn["arguments"]) != "map[x:1]" {
		t.Errorf("call: %v", fn)
	}
	if end := list[len(list)-1]; end["done"] != true || end["done_reason"] != "stop" {
		t.Errorf("last message: %v", end)
	}
	m, err := f.find(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.EncodeRendered("system:brief|user:Hi|assistant:|tool:2|T=f|think=False", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.parrot.last(t).Prompt; !slices.Equal(got, want) {
		t.Errorf("prompt %v, want %v", got, want)
	}
	f.has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"system","content":"other"},{"role":"user","content":"Hi"}],"stream":false}`,
		200,
		`"role":"assistant"`, `"thinking":"hm"`, `"done":true`, `"stats":{`)
	f.has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":{"type":"object"},"stream":false,`+
			`"logprobs":true,"top_logprobs":2}`, 200,
		`"logprobs":[{"token":"`)
	if got := f.parrot.last(t); got.Format != (runtime.Format{Kind: runtime.FormatSchema, Source: `{"type":"object"}`}) ||
		!got.LogProbs || got.TopLogProbs != 2 {
		t.Errorf("request with a format: %+v", got)
	}
	f.has(t, "POST", "/api/chat",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":"json","stream":false}`, 200)
	if got := f.parrot.last(t); got.Format.Kind != runtime.FormatJSON || got.Format.Source != "" {
		t.Errorf("request with a format: %+v", got)
	}
	f.has(t, "POST", "/api/chat",
		`{"model":"plain","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"stream":false}`, 200)
	for body, want := range map[string]string{
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":"xml"}`:                   "bad format",
		`{"model":"talk","messages":[{"role":"user","content":"x"}],"format":7}`:                       "bad format",
		`{"model":"plain","messages":[{"role":"system","content":"s"},{"role":"user","content":"x"}]}`: "a system message",
		`{"model":"talk","messages":[{"content":"x"}]}`:                                                "without a role",
		`{"model":"talk","messages":[{"role":"user","content":"x","images":["AAAA"]}]}`:                "vision",
		`{"model":"talk","messages":"x"}`:                                                              "messages",
	} {
		f.has(t, "POST", "/api/chat", body, 400, want)
	}
}

func TestLoadAndUnload(t *testing.T) {
	f := serve(t, nil)
	f.has(t, "POST", "/api/generate", `{"model":"plain"}`, 200, `"done":true`, `"done_reason":"load"`)
	f.has(t, "GET", "/api/ps", "", 200, `"name":"plain:latest"`, `"loaded":1`, `"requests":0`, `"pid":4711`,
		`"context_length":512`)
	if len(f.loads) != 1 || !strings.HasPrefix(f.loads[0].Name, "plain:latest@sha256:") || f.loads[0].Memory <= 0 ||
		f.loads[0].PrefixCache <= 0 {
		t.Errorf("loads: %+v", f.loads)
	}
	f.has(t, "POST", "/api/chat", `{"model":"plain","messages":[],"keep_alive":-1}`, 200, `"done_reason":"load"`)
	f.has(t, "POST", "/api/chat", `{"model":"plain","messages":[{"role":"user","content":"x"}],"stream":false}`, 200)
	if len(f.loads) != 1 {
		t.Errorf("the model was loaded %d times", len(f.loads))
	}
	f.has(t, "POST", "/api/generate", `{"model":"plain","keep_alive":0}`, 200, `"done_reason":"unload"`)
	<-f.parrot.done
	f.has(t, "POST", "/api/generate", `{"model":"none","keep_alive":0}`, 404)

	// If a name refers to another model, the next request loads that.
	f.has(t, "POST", "/api/generate", `{"model":"plain"}`, 200)
	old := f.parrot
	create(t, f.opts.Store, "plain", modelfile.Command{Name: modelfile.Parameter, Key: "temperature", Value: "0.1"})
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	<-old.done
	if got := f.parrot.last(t); got.Sampling.Temperature != 0.1 {
		t.Errorf("temperature of the new model: %v", got.Sampling.Temperature)
	}

	// A model whose process died is loaded again.
	_ = f.parrot.Close()
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	if len(f.loads) != 4 {
		t.Errorf("%d loads, want 4", len(f.loads))
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		fail   error
		status int
		want   string
	}{
		"busy":     {fmt.Errorf("512 requests wait: %w", runtime.ErrBusy), 503, "512 requests wait"},
		"died":     {fmt.Errorf("%w: signal: killed", runner.ErrDied), 500, "signal: killed"},
		"prompt":   {fmt.Errorf("the prompt has 9 tokens: %w", runtime.ErrPrompt), 400, "9 tokens"},
		"deadline": {context.DeadlineExceeded, 504, "deadline"},
		"other":    {errors.New("a kernel\nis missing"), 500, "a kernel is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			f.says, f.fail = nil, c.fail
			f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x"}`, c.status, `{"error":"`, c.want)
			_ = f.parrot.Close()
			f.says = []string{"Hello"}
			status, text := f.ask(t, "POST", "/api/generate", `{"model":"plain","prompt":"x"}`)
			if list := lines(t, text); status != 200 || len(list) != 2 ||
				!strings.Contains(fmt.Sprint(list[1]["error"]), c.want) {
				t.Errorf("error after the start: %d: %s", status, text)
			}
		})
	}
	f := serve(t, nil)
	status, text := f.ask(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"num_predict":13}}`)
	if status != 500 || !strings.Contains(text, "out of range") {
		t.Errorf("a panic: %d: %s", status, text)
	}
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
}

func TestAccessControl(t *testing.T) {
	f := serve(t, func(o *Options) {
		o.Host, o.Hosts, o.Origins = "127.0.0.1", []string{"models.example"}, []string{"https://chat.example"}
	})
	for _, c := range []struct {
		header, value string
		status        int
	}{
		{"Host", "127.0.0.1:11434", 200},
		{"Host", "[::1]:11434", 200},
		{"Host", "localhost:11434", 200},
		{"Host", "a.localhost", 200},
		{"Host", "models.example:80", 200},
		{"Host", "192.168.1.7", 200},
		{"Host", "evil.example", 403},
		{"Host", "localhost.evil.example", 403},
		{"Origin", "http://localhost:3000", 200},
		{"Origin", "http://127.0.0.1", 200},
		{"Origin", "https://chat.example", 200},
		{"Origin", "app://obsidian.md", 200},
		{"Origin", f.url, 200},
		{"Origin", "https://evil.example", 403},
		{"Origin", "https://localhost.evil.example", 403},
		{"Origin", "null", 403},
		{"Origin", "http://192.168.1.7", 403},
	} {
		status, text := f.ask(t, "GET", "/api/version", "", c.header, c.value)
		if status != c.status {
			t.Errorf("%s: %s: status %d, want %d: %s", c.header, c.value, status, c.status, text)
		}
	}
	r, _ := http.NewRequest("OPTIONS", f.url+"/api/chat", nil)
	r.Header.Set("Origin", "https://chat.example")
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "content-type")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if h := response.Header; response.StatusCode != 204 ||
		h.Get("Access-Control-Allow-Origin") != "https://chat.example" ||
		h.Get("Access-Control-Allow-Headers") != "content-type" ||
		!strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") || h.Get("Vary") != "Origin" {
		t.Errorf("preflight: %d, %v", response.StatusCode, h)
	}
}

func TestAPIKey(t *testing.T) {
	f := serve(t, func(o *Options) { o.APIKey = "secret" })
	for _, c := range []struct {
		path, header, value string
		status              int
	}{
		{"/api/version", "X", "", 401},
		{"/api/version", "Authorization", "Bearer secret", 200},
		{"/api/version", "Authorization", "bearer secret", 200},
		{"/api/version", "Authorization", "Bearer secre", 401},
		{"/api/version", "Authorization", "secret", 401},
		{"/api/version", "X-Api-Key", "secret", 200},
		{"/healthz", "X", "", 200},
		{"/readyz", "X", "", 200},
		{"/", "X", "", 401},
	} {
		if status, text := f.ask(t, "GET", c.path, "", c.header, c.value); status != c.status {
			t.Errorf("%s with %s: %s: status %d, want %d: %s", c.path, c.header, c.value, status, c.status, text)
		}
	}
}

func TestLongBody(t *testing.T) {
	f := serve(t, func(o *Options) { o.MaxBody = 1000 })
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"`+strings.Repeat("x", 1000)+`"}`, 413,
		"exceeds 1000 bytes")
	f.has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
}

// open starts a stream and reads its first line.
func (f *fixture) open(t *testing.T, ctx context.Context) (io.ReadCloser, *bufio.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", f.url+"/api/generate",
		strings.NewReader(`{"model":"plain","prompt":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "Hello") {
		t.Fatalf("%q, %v", line, err)
	}
	return response.Body, reader
}

// If a client disconnects, its request is cancelled.
func TestClientDisconnects(t *testing.T) {
	f := serve(t, nil)
	f.wait = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	body, _ := f.open(t, ctx)
	cancel()
	body.Close()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		f.parrot.mu.Lock()
		left := f.parrot.left
		f.parrot.mu.Unlock()
		if left == 1 && f.pool.List()[0].Leases == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the request is still running")
		}
	}
}

func TestShutdown(t *testing.T) {
	for name, inTime := range map[string]bool{"ends in time": true, "takes too long": false} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, nil)
			f.wait = make(chan struct{})
			body, reader := f.open(t, t.Context())
			defer body.Close()
			grace := 50 * time.Millisecond
			if inTime {
				grace = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), grace)
			defer cancel()
			stopped := make(chan struct{})
			go func() { f.Shutdown(ctx); close(stopped) }()
			if inTime {
				for !f.stopping.Load() {
					time.Sleep(time.Millisecond)
				}
				close(f.wait)
			}
			rest, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			want := `"error":"the server is stopping"`
			if inTime {
				want = `"done":true`
			}
			if list := lines(t, string(rest)); !strings.Contains(string(rest), want) || len(list) == 0 {
				t.Errorf("the stream ends with %q, want %s", rest, want)
			}
			<-stopped
			<-f.parrot.done
		})
	}
}

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{`300`: 5 * time.Minute, `"5m"`: 5 * time.Minute,
		`"300"`: 5 * time.Minute, `0`: 0, `"0"`: 0, `-1`: pool.Forever, `"-1m"`: pool.Forever, `0.5`: time.Second / 2} {
		var k keepAlive
		if err := json.Unmarshal([]byte(text), &k); err != nil || k.Duration == nil || *k.Duration != want {
			t.Errorf("%s: %v, %v, want %v", text, k.Duration, err, want)
		}
	}
	var k keepAlive
	if err := json.Unmarshal([]byte(`null`), &k); err != nil || k.Duration != nil {
		t.Errorf("null: %v, %v", k.Duration, err)
	}
}
