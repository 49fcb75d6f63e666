package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingotml/ingot/runtime"
	"github.com/ingotml/ingot/runtime/pool"
	"github.com/ingotml/ingot/runtime/runner"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/identity"
	"github.com/ingotml/ingot/server/params"
	"github.com/ingotml/ingot/server/servertest"
)

func TestPlainResponses(t *testing.T) {
	f := serve(t, nil)
	f.Has(t, "GET", "/", "", 200, "ingot is running")
	f.Has(t, "HEAD", "/", "", 200)
	f.Has(t, "GET", "/healthz", "", 200, "ok")
	f.Has(t, "GET", "/readyz", "", 200, "ok")
	f.Has(t, "POST", "/v1/tokenize", `{"model":"none","prompt":"x"}`, 404, `"message":"`, "ingot pull")
	f.Has(t, "GET", "/api/version", "", 200, `"version":"0.33.0"`, `"ingot":"1.2.3"`,
		`"store":"`+identity.StoreID(f.Options().Store)+`"`)
	f.Has(t, "GET", "/api/tags", "", 200, `"name":"plain:latest"`, `"name":"talk:latest"`, `"family":"llama"`,
		`"parameter_size":"`, `"quantization_level":"BF16"`)
	f.Has(t, "GET", "/api/ps", "", 200, `{"models":[]}`)
	f.Has(t, "POST", "/api/show", `{"model":"talk"}`, 200, `"system":"brief"`, `"parser":"qwen3"`,
		`"general.architecture":"llama"`, `"llama.context_length":512`,
		`"capabilities":["completion"`, `FROM talk:latest`, `temperature 0.7`)
	f.Has(t, "POST", "/api/show", `{"name":"plain"}`, 200, `"details":{`)
	f.Has(t, "POST", "/api/show", `{"model":"none"}`, 404, `model 'none' not found`)
	f.Has(t, "GET", "/nothing", "", 404, `{"error":"/nothing not found"}`)
	f.Has(t, "GET", "/api/chat", "", 405, `GET /api/chat is not supported: use POST`)
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
			f.Says, f.Fail = nil, c.fail
			f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x"}`, c.status, `{"error":"`, c.want)
			_ = f.Parrot.Close()
			f.Says = []string{"Hello"}
			status, text := f.Ask(t, "POST", "/api/generate", `{"model":"plain","prompt":"x"}`)
			if list := servertest.Lines(t, text); status != 200 || len(list) != 2 ||
				!strings.Contains(fmt.Sprint(list[1]["error"]), c.want) {
				t.Errorf("error after the start: %d: %s", status, text)
			}
		})
	}
	f := serve(t, nil)
	status, text := f.Ask(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","options":{"num_predict":13}}`)
	if status != 500 || !strings.Contains(text, "out of range") {
		t.Errorf("a panic: %d: %s", status, text)
	}
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
}

func TestAccessControl(t *testing.T) {
	f := serve(t, func(o *server.Options) {
		o.Host = "127.0.0.1"
		o.Hosts, o.Origins = servertest.Access(t, "models.example", "https://chat.example")
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
		{"Origin", f.URL, 200},
		{"Origin", "https://evil.example", 403},
		{"Origin", "https://localhost.evil.example", 403},
		{"Origin", "null", 403},
		{"Origin", "http://192.168.1.7", 403},
	} {
		status, text := f.Ask(t, "GET", "/api/version", "", c.header, c.value)
		if status != c.status {
			t.Errorf("%s: %s: status %d, want %d: %s", c.header, c.value, status, c.status, text)
		}
	}
	r, _ := http.NewRequest("OPTIONS", f.URL+"/api/chat", nil)
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
	f := serve(t, func(o *server.Options) { o.APIKey = "secret" })
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
		if status, text := f.Ask(t, "GET", c.path, "", c.header, c.value); status != c.status {
			t.Errorf("%s with %s: %s: status %d, want %d: %s", c.path, c.header, c.value, status, c.status, text)
		}
	}
}

func TestLongBody(t *testing.T) {
	f := serve(t, func(o *server.Options) { o.MaxBody = 1000 })
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"`+strings.Repeat("x", 1000)+`"}`, 413,
		"exceeds 1000 bytes")
	f.Has(t, "POST", "/api/generate", `{"model":"plain","prompt":"x","stream":false}`, 200)
}

// open starts a stream and reads its first line.
func (f *fixture) open(t *testing.T, ctx context.Context) (io.ReadCloser, *bufio.Reader) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", f.URL+"/api/generate",
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
	f.Wait = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	body, _ := f.open(t, ctx)
	cancel()
	body.Close()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		f.Parrot.Mu.Lock()
		left := f.Parrot.Left
		f.Parrot.Mu.Unlock()
		if left == 1 && f.Loaded()[0].Leases == 0 {
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
			f.Wait = make(chan struct{})
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
				for !f.IsStopping() {
					time.Sleep(time.Millisecond)
				}
				close(f.Wait)
			}
			rest, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			want := `"error":"the server is stopping"`
			if inTime {
				want = `"done":true`
			}
			if list := servertest.Lines(t, string(rest)); !strings.Contains(string(rest), want) || len(list) == 0 {
				t.Errorf("the stream ends with %q, want %s", rest, want)
			}
			<-stopped
			<-f.Parrot.Done()
		})
	}
}

func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{`300`: 5 * time.Minute, `"5m"`: 5 * time.Minute,
		`"300"`: 5 * time.Minute, `0`: 0, `"0"`: 0, `-1`: pool.Forever, `"-1m"`: pool.Forever, `0.5`: time.Second / 2} {
		var k params.KeepAlive
		if err := json.Unmarshal([]byte(text), &k); err != nil || k.Duration == nil || *k.Duration != want {
			t.Errorf("%s: %v, %v, want %v", text, k.Duration, err, want)
		}
	}
	var k params.KeepAlive
	if err := json.Unmarshal([]byte(`null`), &k); err != nil || k.Duration != nil {
		t.Errorf("null: %v, %v", k.Duration, err)
	}
}
