package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/keys"
)

// withKeys changes the options to those of a server with a file of keys. log gets the server's log.
func withKeys(t *testing.T, text string, log io.Writer) func(*server.Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) {
		o.Log = func(format string, args ...any) { fmt.Fprintf(log, format+"\n", args...) }
		list, err := keys.Open(path, o.Log)
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = list
	}
}

// asks are a request to each API, with what its refusal for a limit has.
var asks = []struct{ path, body, refusal string }{
	{"/api/chat", `{"model":"talk","stream":false,"messages":[{"role":"user","content":"Hi"}]}`, `{"error":"too many `},
	{"/v1/chat/completions", `{"model":"talk","messages":[{"role":"user","content":"Hi"}]}`,
		`"param":null,"code":"rate_limit_exceeded"}}`},
	{"/v1/responses", `{"model":"talk","input":"Hi"}`, `"param":null,"code":"rate_limit_exceeded"}}`},
	{"/v1/embeddings", `{"model":"plain","input":"a lamp"}`, `"param":null,"code":"rate_limit_exceeded"}}`},
	{"/v1/messages", `{"model":"talk","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`,
		`{"type":"error","error":{"type":"rate_limit_error","message":"too many `},
}

// send sends a request with a key, and returns the response with its text.
func (f *fixture) send(t *testing.T, path, body, key string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", f.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// A key that has used its tokens gets 429 with Retry-After in the form of each API; the others do not notice.
func TestTokensOfKeys(t *testing.T) {
	for _, ask := range asks {
		f := serve(t, withKeys(t, "alice ka tokens_per_minute=1\nbob kb\n", io.Discard))
		for i, want := range []int{200, 429} {
			response, text := f.send(t, ask.path, ask.body, "ka")
			if response.StatusCode != want {
				t.Errorf("%s, request %d: status %d: %s", ask.path, i, response.StatusCode, text)
			}
			after := response.Header.Get("Retry-After")
			if want == 429 && (!strings.Contains(text, ask.refusal) || after == "" || after == "0") {
				t.Errorf("%s: %s, Retry-After %q; want %s", ask.path, text, after, ask.refusal)
			}
		}
		if response, text := f.send(t, ask.path, ask.body, "kb"); response.StatusCode != 200 {
			t.Errorf("%s: the other key: %d: %s", ask.path, response.StatusCode, text)
		}
		f.Has(t, "GET", "/healthz", "", 200)
		if status, text := f.Ask(t, "GET", "/api/ps", "", "X-Api-Key", "ka"); status != 200 {
			t.Errorf("reading without work: status %d: %s", status, text)
		}
	}
}

// A key runs as many requests at once as it may.
func TestRequestsOfKeys(t *testing.T) {
	wait := make(chan struct{})
	f := serve(t, withKeys(t, "alice ka requests=2\nbob kb\n", io.Discard))
	f.Wait = wait
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if response, text := f.send(t, "/api/chat", asks[0].body, "ka"); response.StatusCode != 200 {
				t.Errorf("a request within the limit: %d: %s", response.StatusCode, text)
			}
		})
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, text := f.Ask(t, "GET", "/metrics", "", "X-Api-Key", "kb")
		if strings.Contains(text, `ingot_key_requests_open{key="alice"} 2`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the requests do not run:\n%s", text)
		}
	}
	response, text := f.send(t, "/v1/chat/completions", asks[1].body, "ka")
	if response.StatusCode != 429 || response.Header.Get("Retry-After") != "1" ||
		!strings.Contains(text, "2 run, at most 2 are allowed") || !strings.Contains(text, `"type":"requests"`) {
		t.Errorf("one more: %d: %s", response.StatusCode, text)
	}
	close(wait)
	running.Wait()
	if response, text := f.send(t, "/api/chat", asks[0].body, "ka"); response.StatusCode != 200 {
		t.Errorf("afterwards: %d: %s", response.StatusCode, text)
	}
}

// Metrics and the log have the names of keys, and never the keys.
func TestNamesOfKeys(t *testing.T) {
	var log strings.Builder
	f := serve(t, withKeys(t, "alice s3cret-a\nbob s3cret-b\n", &log))
	f.Says = []string{"Hello", " world"}
	f.send(t, "/api/chat", asks[0].body, "s3cret-a")
	f.send(t, "/api/chat", asks[0].body, "s3cret-c")
	f.send(t, "/api/show", `{"model":"none"}`, "s3cret-b")
	f.StopModel("talk:latest")
	f.Fail = fmt.Errorf("the model is broken")
	f.Says = nil
	f.send(t, "/api/chat", asks[0].body, "s3cret-b")
	_, text := f.Ask(t, "GET", "/metrics", "", "X-Api-Key", "s3cret-b")
	for _, want := range []string{
		`ingot_key_requests_total{key="alice",status="200"} 1`, `ingot_key_requests_total{key="bob",status="404"} 1`,
		`ingot_key_requests_total{key="bob",status="500"} 1`, `ingot_key_tokens_total{key="alice",of="generated"} 2`,
		`ingot_key_tokens_total{key="bob",of="generated"} 0`, `ingot_key_requests_open{key="alice"} 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if !strings.Contains(log.String(), "POST /api/chat (key bob): ") {
		t.Errorf("log %q", log.String())
	}
	if strings.Contains(text+log.String(), "s3cret") {
		t.Error("a key is shown")
	}
}
