package server_test

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ingotml/ingot/internal/limits/runtest"
	ingot "github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/server"
)

// mute is a model that accepts any request and generates nothing.
type mute struct {
	done chan struct{}
	once sync.Once
}

func (m *mute) Done() <-chan struct{} { return m.done }

func (m *mute) Close() error { m.once.Do(func() { close(m.done) }); return nil }

func (m *mute) Generate(context.Context, ingot.Request) iter.Seq2[ingot.Event, error] {
	return func(yield func(ingot.Event, error) bool) { yield(ingot.Event{Done: ingot.DoneStop}, nil) }
}

func (m *mute) Embed(_ context.Context, r ingot.EmbedRequest) (e ingot.Embeddings, _ error) {
	for range r.Inputs {
		e.Vectors = append(e.Vectors, []float32{1})
	}
	return e, nil
}

// serveMute starts a server whose models do not keep requests.
func serveMute(t testing.TB, change func(*server.Options)) *fixture {
	t.Helper()
	return serve(t, func(o *server.Options) {
		o.MaxBody = 1 << 20
		o.Load = func(context.Context, server.Child, func(float64)) (pool.Model, error) {
			return &mute{done: make(chan struct{})}, nil
		}
		if change != nil {
			change(o)
		}
	})
}

// wellFormed is a body with valid fields for most routes.
const wellFormed = `{"model":"talk","name":"talk","source":"talk","destination":"other","prompt":"x","system":"s",
"input":["x"],"content":"x","text":"x","tokens":[1],
"messages":[{"role":"user","content":"x","images":[],"tool_calls":[]}],
"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
"options":{"temperature":0,"stop":["x"],"num_predict":1,"seed":1,"logit_bias":{"1":1}},"format":{"type":"object"},
"response_format":{"type":"text"},"tool_choice":"auto",
"stop":["x"],"temperature":1,"top_p":1,"n":1,"max_tokens":1,"stream":false,"keep_alive":"5m","think":false,
"context":[1],"template":"x","dimensions":1,
"encoding_format":"float","logprobs":false,"top_logprobs":0,"seed":1,"user":"x","truncate":true,"suffix":"",
"images":[],"from":"talk","parameters":{},"files":{}}`

// elsewhere are routes that contact other machines or delete models that the tests use. They get only malformed
// requests.
var elsewhere = []string{"/api/pull", "/api/push", "/api/delete"}

// pathAt returns an endpoint's path with what for each wildcard.
func pathAt(r server.Endpoint, what string) string {
	return wildcard.ReplaceAllString(strings.ReplaceAll(r.Path, "{$}", ""), what)
}

// damaged are bodies that every route rejects.
func damaged() map[string]string {
	return map[string]string{
		"empty": "", "spaces": "  ", "an end": `{"model":"plain"`, "two": `{"model":"plain"}{}`, "a list": "[]",
		"a text": `"x"`, "a number": "5", "true": "true",
		"null": "null", "nothing": "{}", "zero bytes": "\x00\x00", "no UTF-8": "{\"model\":\"\xff\xfe\"}",
		"single quotes": `{'model':'plain'}`,
		"deep lists":    strings.Repeat("[", 100_000), "deep objects": strings.Repeat(`{"a":`, 100_000) + "1" +
			strings.Repeat("}", 100_000),
		"deep in a field": `{"model":"plain","messages":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) +
			"}",
		"a number as the model": `{"model":5,"name":5}`, "a list as the model": `{"model":["plain"],"name":["plain"]}`,
		"an object as the model": `{"model":{},"name":{}}`,
		"too long":               `{"model":"` + strings.Repeat("a", 2<<20) + `"}`, "too many lists": `{"messages":[` +
			strings.Repeat("{},", 300_000) + `{}]}`,
	}
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// unharmed checks that a server still responds and that the requests did not leak memory.
func (f *fixture) unharmed(t *testing.T, before int64) {
	t.Helper()
	f.Has(t, "GET", "/healthz", "", 200)
	f.Has(t, "POST", "/api/show", `{"model":"talk"}`, 200)
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("heap use grew by %d bytes", grown)
	}
	if held, _ := f.HeldBodies(); held != 0 {
		t.Errorf("%d bytes of bodies are not released", held)
	}
}

// Malformed bodies are rejected by every route that takes a body.
func TestDamagedBodies(t *testing.T) {
	f := serveMute(t, nil)
	before := heap()
	for _, r := range f.AllEndpoints() {
		if r.Method == "GET" {
			continue
		}
		for name, body := range damaged() {
			status, text := f.Ask(t, r.Method, pathAt(r, "x"), body)
			if status < 400 || status > 499 || len(text) > 2000 {
				t.Errorf("%s %s, %s: status %d: %.300s", r.Method, r.Path, name, status, text)
			}
		}
	}
	f.unharmed(t, before)
}

// Fields of a wrong type or with an extreme value do not cause server errors.
func TestWrongFields(t *testing.T) {
	f := serveMute(t, nil)
	before := heap()
	values := []string{`null`, `true`, `-1`, `1e300`, `1e999`, `9223372036854775808`, `"\u0000"`, `[null]`, `["x",[]]`,
		`{"":null}`, `[{}]`}
	deep := []string{`[{"role":5}]`, `[{"role":"user","content":[{"type":"image_url"}]}]`, `[{"type":"function"}]`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat(`{"properties":{"a":`, 2000) + "{}" +
			strings.Repeat("}}", 2000)}
	structured := []string{"messages", "tools", "input", "format", "response_format", "options", "tool_choice"}
	every := runtest.Pick(7, 1) // one combination in seven: all would take minutes
	if runtest.Race && !runtest.Long() {
		every *= 3 // make test tests the others
	}
	turn := 0
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(wellFormed), &fields); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.AllEndpoints() {
		if r.Method == "GET" || slices.Contains(elsewhere, r.Path) {
			continue
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			good := fields[field]
			list := values
			if slices.Contains(structured, field) {
				list = slices.Concat(values, deep)
			}
			for _, v := range list {
				if turn++; turn%every != 0 {
					continue
				}
				fields[field] = json.RawMessage(v)
				body, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				w := httptest.NewRecorder()
				f.direct(w, r.Method, pathAt(r, "x"), string(body))
				if w.Code >= 500 {
					t.Errorf("%s %s with %s %.60s: status %d: %.300s", r.Method, r.Path, field, v, w.Code, w.Body)
				}
			}
			fields[field] = good
		}
	}
	f.unharmed(t, before)
}

// direct calls the handler without a connection.
func (f *fixture) direct(w http.ResponseWriter, method, path, body string) {
	r := httptest.NewRequest(method, "http://localhost/", strings.NewReader(body))
	r.URL.Path = path
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	f.ServeHTTP(w, r)
}

// FuzzBodies sends bodies to every route.
func FuzzBodies(f *testing.F) {
	s := serveMute(f, func(o *server.Options) { o.MaxBody = 64 << 10 })
	var routes []server.Endpoint
	for _, r := range s.AllEndpoints() {
		if !slices.Contains(elsewhere, r.Path) {
			routes = append(routes, r)
		}
	}
	at := func(path string) uint8 {
		return uint8(slices.IndexFunc(routes, func(r server.Endpoint) bool { return r.Method == "POST" && r.Path == path }))
	}
	for i := range routes {
		f.Add(uint8(i), wellFormed)
	}
	i := 0
	for _, body := range damaged() { // TestDamagedBodies tests all of them with all routes
		if i++; len(body) < 1000 {
			f.Add(uint8(i), body)
		}
	}
	f.Add(at("/api/generate"),
		`{"model":"plain","prompt":"x","options":{"stop":"x"},"stream":true,"think":"high","format":"json"}`)
	f.Add(at("/api/chat"),
		`{"model":"talk","messages":[{"role":"user","content":"x","images":["AAAA"]},{"role":"tool","tool_name":"f",`+
			`"content":"x"}],"format":{"type":"string"}}`)
	f.Add(at("/v1/chat/completions"),
		`{"model":"talk","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url",`+
			`"image_url":{"url":"data:image/png;base64,AAAA"}}]}],"stream":true}`)
	f.Add(at("/v1/chat/completions"),
		`{"model":"talk","messages":[{"role":"tool","tool_call_id":"1","content":"x"}],"tool_choice":{"type":"function",`+
			`"function":{"name":"f"}},"parallel_tool_calls":false}`)
	f.Add(at("/v1/messages"),
		`{"model":"talk","max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"assistant",`+
			`"content":[{"type":"tool_use","id":"1","name":"f","input":{}}]}]}`)
	f.Add(at("/v1/responses"),
		`{"model":"talk","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}],"instructions":"x",`+
			`"reasoning":{"effort":"low"},"stream":true}`)
	f.Add(at("/v1/embeddings"), `{"model":"talk","input":[[1,2],[3]],"encoding_format":"base64"}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		r := routes[int(which)%len(routes)]
		w := httptest.NewRecorder()
		s.direct(w, r.Method, pathAt(r, "x"), body)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s %q: status %d: %s", r.Method, r.Path, body, w.Code, w.Body)
		}
	})
}
