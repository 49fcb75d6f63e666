package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
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

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/wire"

	ingot "github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
)

// mute is a model that accepts any request and generates nothing.
type mute struct {
	done chan struct{}
	once sync.Once
}

func (m *mute) Done() <-chan struct{} { return m.done }
func (m *mute) Close() error          { m.once.Do(func() { close(m.done) }); return nil }

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
	const every = 7 // tests one combination in seven: all would take minutes
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

// Large bodies share a memory limit. A body that exceeds what is left gets a 503, and memory is released afterwards.
func TestLargeBodiesAtOnce(t *testing.T) {
	f := serveMute(t, func(o *server.Options) { o.MaxBody = 16 << 20 })
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
	status, text := f.Ask(t, "POST", "/api/generate", body)
	if status != 503 || !strings.Contains(text, "other large requests") {
		t.Errorf("a third large body: status %d: %.200s", status, text)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
	for _, c := range held {
		_, _ = io.WriteString(c, body[len(body)-1:])
		b := make([]byte, 12)
		if _, err := io.ReadFull(c, b); err != nil || !bytes.HasSuffix(b, []byte("404")) {
			t.Errorf("%q, %v", b, err)
		}
		c.Close()
	}
	if status, text := f.Ask(t, "POST", "/api/generate", body); status != 404 {
		t.Errorf("a large body alone: status %d: %.200s", status, text)
	}
	body = `{"messages":[` + strings.Repeat("{},", 1<<20) + `{}]}`
	if status, text := f.Ask(t, "POST", "/api/chat", body); status != 413 || !strings.Contains(text, "bytes of memory") {
		t.Errorf("a million objects: status %d: %.200s", status, text)
	}
	f.unharmed(t, before)
}
